"""Links in HTML, reStructuredText, plain text, CSV and sitemaps, with their lines."""

from __future__ import annotations

import csv

import pytest

from linkwatch_pipeline.adapters.handbook.csv_table import csv_links
from linkwatch_pipeline.adapters.handbook.html import html_file_links
from linkwatch_pipeline.adapters.handbook.markdown import markdown_links
from linkwatch_pipeline.adapters.handbook.rst import rst_links
from linkwatch_pipeline.adapters.handbook.sitemap import sitemap_links
from linkwatch_pipeline.adapters.handbook.text import text_links
from linkwatch_pipeline.domain.handbook import FoundLink

HTML = """<!DOCTYPE html>
<html><head>
<base href="https://base.example.com/docs/">
<base href="https://second.example.com/">
<link rel="stylesheet" href="style.css"><link rel=preconnect href="https://host.example.com">
<script src="/app.js">var a = '<a href="https://script.example.com">';</script>
<style>a { background: url(https://style.example.com) }</style>
<title><a href="https://title.example.com"></title>
<meta http-equiv="Refresh" content="5; URL='next.html'">
</head><body>
https://bare.example.com
<a href="page?a=1&copy=2&amp;b=3">x</a> <a href="#top">y</a> <a href="">z</a> <a name="q">no</a>
<A
  class=x
  HREF='
  https://a.example.com/trim
'>b</A>
<!-- <a href="https://comment.example.com"> --><!--><a href="https://after.example.com">
<img src="//cdn.example.com/a.png" srcset="a-1.png, a-2.png 2x,https://i.example.com/c,d.png 3x">
<video poster="poster.png"><source src="v.mp4"></video><object data="o.pdf"></object>
<a href="{{ site.url }}/x">t</a> <a href="{% link "https://tag.example.com" %}">u</a>
<a href=https://unquoted.example.com/?q=1>v</a/><a href="https://dup.example.com" href="https://no.example.com">
<div <a href="https://broken.example.com">w</a>
<a href="https://unclosed.example.com>the rest is no tag
"""


def pairs(links: list[FoundLink]) -> list[tuple[int, str]]:
    return [(link.line, link.text) for link in links]


def test_html_is_read_as_a_browser_reads_it() -> None:
    assert pairs(html_file_links(HTML)) == [
        (5, "https://base.example.com/docs/style.css"),
        (6, "https://base.example.com/app.js"),
        (9, "https://base.example.com/docs/next.html"),
        (12, "https://base.example.com/docs/page?a=1&copy=2&b=3"),
        (12, "#top"),
        (12, ""),
        (15, "https://a.example.com/trim"),
        (18, "https://after.example.com"),
        (19, "https://cdn.example.com/a.png"),
        (19, "https://base.example.com/docs/a-1.png"),
        (19, "https://base.example.com/docs/a-2.png"),
        (19, "https://i.example.com/c,d.png"),
        (20, "https://base.example.com/docs/poster.png"),
        (20, "https://base.example.com/docs/v.mp4"),
        (20, "https://base.example.com/docs/o.pdf"),
        (21, "https://base.example.com/docs/{{ site.url }}/x"),
        (21, "https://tag.example.com"),
        (22, "https://unquoted.example.com/?q=1"),
        (22, "https://dup.example.com"),
        (23, "https://broken.example.com"),
    ]


def test_html_without_a_base_keeps_relative_links_relative() -> None:
    assert pairs(html_file_links('<a href="../x">x</a>\n<a href="[">y</a>')) == [(1, "../x"), (2, "[")]


RST = """
Title
=====

See `docs <https://a.example.com/1>`_ and named_ or `anon two`__
and https://a.example.com/2. :doc:`other` :ref:`x <y>`

.. _named: https://a.example.com/3
.. _unused: https://a.example.com/unused
__ https://a.example.com/4

.. note:: hi `in note
   <https://a.example.com/5>`_

.. tab-set::

   .. tab-item:: x
      :sync: y

      https://a.example.com/6 and https://a.example.com/6
      https://a.example.com/6

.. code-block:: python

   x = "https://a.example.com/code"

::

   https://a.example.com/literal

``https://a.example.com/inline-literal``

.. image:: https://a.example.com/7.png
   :target: https://a.example.com/8

.. comment https://a.example.com/comment

.. include:: other.rst

.. raw:: html

   <a href="https://a.example.com/raw">

=====  =====
a      https://a.example.com/9
=====  =====

|sub| mail me@example.org

.. |sub| image:: https://a.example.com/10.png
"""


def test_restructured_text_is_read_with_the_directives_of_sphinx() -> None:
    assert pairs(rst_links(RST)) == [
        (5, "https://a.example.com/1"),
        (5, "https://a.example.com/3"),
        (5, "https://a.example.com/4"),
        (6, "https://a.example.com/2"),
        (13, "https://a.example.com/5"),
        (20, "https://a.example.com/6"),
        (20, "https://a.example.com/6"),
        (21, "https://a.example.com/6"),
        (33, "https://a.example.com/7.png"),
        (34, "https://a.example.com/8"),
        (42, "https://a.example.com/raw"),
        (45, "https://a.example.com/9"),
        (48, "mailto:me@example.org"),
        (50, "https://a.example.com/10.png"),
    ]


def test_restructured_text_includes_no_other_file(tmp_path: object) -> None:
    assert rst_links(f".. include:: {__file__}\n\n.. csv-table::\n   :file: {__file__}\n") == []
    assert rst_links(f".. raw:: html\n   :file: {__file__}\n") == []


RST_OF_SPHINX = """
https://a.example.com/1
-----------------------

.. seealso:: `See <https://a.example.com/2>`_

.. versionadded:: 1.0
   With https://a.example.com/3

.. youtube:: https://a.example.com/4

.. grid-item-card:: Card
   :link: https://a.example.com/5

   Inside https://a.example.com/6

.. toctree::
   :maxdepth: 2

   page
   Elsewhere <https://a.example.com/7>
"""


def test_titles_arguments_and_options_of_directives_hold_links() -> None:
    lines = {1: 2, 2: 5, 3: 8, 4: 10, 5: 13, 6: 15, 7: 21}
    assert pairs(rst_links(RST_OF_SPHINX)) == [(line, f"https://a.example.com/{n}") for n, line in lines.items()]


@pytest.mark.parametrize("filled_in", ["release", "the version", "x's", "#"])
def test_a_substitution_that_sphinx_fills_in_is_no_obstacle(filled_in: str) -> None:
    text = f"|name| is at https://a.example.com/1\n\n.. |name| replace:: version |{filled_in}|\n"
    assert pairs(rst_links(text)) == [(1, "https://a.example.com/1")]


def test_a_download_of_sphinx_that_leads_elsewhere_is_a_link() -> None:
    text = """:download:`the form <https://a.example.com/1>` and
:download:`https://a.example.com/2`, :Download:`x <https://a.example.com/3>`;
:download:`a file <files/form.pdf>`, :doc:`no link <https://a.example.com/no>`
"""
    assert pairs(rst_links(text)) == [
        (1, "https://a.example.com/1"),
        (2, "https://a.example.com/2"),
        (2, "https://a.example.com/3"),
    ]


def test_link_components_lead_where_to_says() -> None:
    text = """<Link to="https://a.example.com/1">x</Link>
<NavLink to={"https://a.example.com/2"} />
<router-link to="/docs">x</router-link>
<animate from="0" to="https://a.example.com/no" />
"""
    assert pairs(html_file_links(text)) == [
        (1, "https://a.example.com/1"),
        (2, "https://a.example.com/2"),
        (3, "/docs"),
    ]
    assert [link.text for link in markdown_links(text, is_mdx=True).links][:2] == [
        "https://a.example.com/1",
        "https://a.example.com/2",
    ]


def test_html_of_components_and_preloaded_images() -> None:
    text = """<Card href={"https://a.example.com/1"} />
<a href={'https://a.example.com/2'}>x</a>
<link rel="preload" imagesrcset="https://a.example.com/3.png 1x">
"""
    assert pairs(html_file_links(text)) == [
        (1, "https://a.example.com/1"),
        (2, "https://a.example.com/2"),
        (3, "https://a.example.com/3.png"),
    ]


def test_plain_text_holds_bare_urls() -> None:
    text = "See https://a.example.com/1.\n(www.example.com/2) <https://a.example.com/3>\nhttps://<host>/x no://url\n"
    assert pairs(text_links(text)) == [
        (1, "https://a.example.com/1"),
        (2, "http://www.example.com/2"),
        (2, "https://a.example.com/3"),
        (3, "https://<host>/x"),
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_is_read_cell_by_cell(delimiter: str) -> None:
    rows = [
        ["name", "url", "note"],
        ["a", "https://a.example.com/1", "see https://a.example.com/2."],
        ["b", '"https://a.example.com/3,x;|y"', '"two\nlines https://a.example.com/4"'],
        ["c", "https://a.example.com/5.", ""],
    ]
    text = "\n".join(delimiter.join(row) for row in rows)
    assert pairs(csv_links(text)) == [
        (2, "https://a.example.com/1"),
        (2, "https://a.example.com/2"),
        (3, "https://a.example.com/3,x;|y"),
        (4, "https://a.example.com/4"),
        (5, "https://a.example.com/5."),
    ]


def test_a_sitemap_names_pages_sitemaps_and_translations() -> None:
    text = """<?xml version="1.0" encoding="ISO-8859-1"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml">
<url><loc>
  https://a.example.com/1?a=1&amp;b=2
</loc><xhtml:link rel="alternate" hreflang="de" href="https://a.example.com/de"/></url>
<url><loc><![CDATA[https://a.example.com/2]]></loc><lastmod>2026-01-01</lastmod></url>
<url><loc></loc></url>
</urlset>"""
    assert pairs(sitemap_links(text)) == [
        (4, "https://a.example.com/1?a=1&b=2"),
        (5, "https://a.example.com/de"),
        (6, "https://a.example.com/2"),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><urlset><loc>&b;</loc></urlset>', "document type"),
        ("<urlset><loc>https://a.example.com", "not well-formed"),
        ("", "not well-formed"),
    ],
)
def test_a_sitemap_that_cannot_be_read_says_why(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        sitemap_links(text)


def test_reading_a_table_leaves_the_bounds_of_other_readers_alone() -> None:
    before = csv.field_size_limit()
    assert csv_links("https://docs.example.com/a,b\n")
    assert csv.field_size_limit() == before
