"""URLs from people who are not operators: what is watched, what is refused, and that each is told (SPEC 9, 12.3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline.adapters.fetch.policy import FixturePolicy, PublicPolicy
from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline.domain.handbook import scanned_link_id
from linkwatch_pipeline.domain.tables import Table, TableRow
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.register import register_link, retire_link, set_owner, update_link
from linkwatch_pipeline.use_cases.submit import Submission, Verdict, submit_urls
from linkwatch_pipeline_tests.builders import MONDAY, a_link

PYTHON = "https://docs.python.org/3/"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = SqliteStore.open(tmp_path / "linkwatch.sqlite3")
    set_owner(opened, team="docs", address="docs@example.com")
    set_owner(opened, team="sre", address="sre@example.com")
    yield opened
    opened.close()


def submit(
    store: Store, *rows: str | dict[str, str], columns: tuple[str, ...] | None = None, **given: Any
) -> list[Submission]:
    """Rows on lines 1, 2, ...; a text is a URL alone."""
    cells = [{"url": row} if isinstance(row, str) else row for row in rows]
    table = Table(rows=tuple(TableRow(line=line, cells=c) for line, c in enumerate(cells, start=1)), columns=columns)
    judge_url = PublicPolicy().judge_url
    return submit_urls(store, table, **{"owner": "docs", "judge_url": judge_url, "now": MONDAY, **given})


def test_an_accepted_url_is_watched_for_its_owner_with_a_made_id_and_nothing_else(store: Store) -> None:
    done = submit(store, "HTTPS://Docs.Python.org:443/3/#top", {"url": "https://peps.python.org/", "owner": " sre "})
    assert [(told.line, told.verdict, told.url) for told in done] == [
        (1, Verdict.ACCEPTED, PYTHON),
        (2, Verdict.ACCEPTED, "https://peps.python.org/"),
    ]
    python = a_link(scanned_link_id(PYTHON), PYTHON, owner="docs", active_since=MONDAY)
    peps = "https://peps.python.org/"
    assert list(store.links()) == [python, a_link(scanned_link_id(peps), peps, owner="sre", active_since=MONDAY)]
    assert done[0].link == python


def test_a_url_that_is_watched_stays_as_it_is_and_its_owner_is_told(store: Store) -> None:
    guide = register_link(store, link_id="guide", url=PYTHON, owner="sre", now=MONDAY).link
    done = submit(store, PYTHON, "https://peps.python.org/", "https://peps.python.org")
    assert [told.verdict for told in done] == [Verdict.WATCHED, Verdict.ACCEPTED, Verdict.WATCHED]
    assert done[0].link == guide == store.get_link("guide")
    assert done[2].link == done[1].link


def test_a_repetition_changes_nothing(store: Store) -> None:
    submit(store, PYTHON)
    before = list(store.links())
    assert [told.verdict for told in submit(store, PYTHON, owner="sre")] == [Verdict.WATCHED]
    assert list(store.links()) == before


def test_what_was_retired_is_not_revived_by_a_submission(store: Store) -> None:
    register_link(store, link_id="guide", url=PYTHON, owner="docs", now=MONDAY)
    retire_link(store, link_id="guide", now=MONDAY)
    before = list(store.links())
    (told,) = submit(store, PYTHON)
    assert (told.verdict, "guide" in told.reason) == (Verdict.REFUSED, True)
    assert list(store.links()) == before


def test_an_id_that_a_moved_link_kept_is_not_taken_from_it(store: Store) -> None:
    (first,) = submit(store, PYTHON)
    assert first.link is not None
    update_link(store, link_id=first.link.id, url="https://docs.python.org/4/", now=MONDAY)
    (second,) = submit(store, PYTHON)
    assert second.link is not None
    assert second.link.id == f"{first.link.id}-2"
    assert len(list(store.links())) == 2


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1/", "127.0.0.1 port 80 is not a public address"),
        ("http://[::1]/", "not a public address"),
        ("http://[::ffff:10.0.0.1]/", "not a public address"),
        ("http://10.1.2.3/", "not a public address"),
        ("http://169.254.169.254/latest/meta-data/", "not a public address"),
        ("http://2130706433/", "odd spelling"),
        ("http://0x7f.1/", "odd spelling"),
        ("http://0177.0.0.1/", "odd spelling"),
        ("http://localhost/", "not a name of the public Internet"),
        ("http://wiki.corp/", "not a name of the public Internet"),
        ("http://metadata.google.internal/", "not a name of the public Internet"),
        ("http://intranet/", "not a name of the public Internet"),
        ("https://docs.python.org:8443/", "port 8443 is not 80 or 443"),
        ("https://docs.python.org:22/", "port 22"),
        ("file:///etc/passwd", "scheme 'file'"),
        ("javascript:alert(1)", "scheme 'javascript'"),
        ("=HYPERLINK(\"http://x\")", "does not begin with http"),
        ("docs.python.org", "does not begin with http"),
        ("https://docs.python.org/ x", "a space"),
        ("https://docs.python.org\\@10.0.0.1/", "a backslash"),
        ("https://" + "x" * 5000, "at most 2048"),
    ],
)  # fmt: skip
def test_what_no_policy_would_fetch_is_refused_with_the_reason_and_the_rest_is_accepted(
    store: Store, url: str, words: str
) -> None:
    bad, good = submit(store, url, PYTHON)
    assert (bad.verdict, good.verdict) == (Verdict.REFUSED, Verdict.ACCEPTED)
    assert words in bad.reason
    assert len(bad.url) <= 201
    assert [link.url for link in store.links()] == [PYTHON]


def test_a_password_is_never_said_again(store: Store) -> None:
    (told,) = submit(store, "https://joe:secret@docs.python.org/")
    assert told.verdict is Verdict.REFUSED
    assert "secret" not in repr(told)


def test_a_fixture_home_takes_its_own_loopback_pair_only(store: Store) -> None:
    judge_url = FixturePolicy([("127.0.0.1", 8765)]).judge_url
    done = submit(
        store, "http://127.0.0.1:8765/a", "http://127.0.0.1:8766/a", "http://localhost:8765/", judge_url=judge_url
    )
    assert [told.verdict for told in done] == [Verdict.ACCEPTED, Verdict.REFUSED, Verdict.REFUSED]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"url": PYTHON, "owner": "nobody"}, "there is no owner 'nobody'"),
        ({"url": PYTHON, "owner": "docs@example.com"}, "not a team name"),
        ({"url": PYTHON, "owner": "docs", "notify": "me@example.com"}, "notify: unknown field"),
        ({"url": PYTHON, "owner": "docs", "link_id": "mine"}, "link_id: unknown field"),
        ({"url": PYTHON, "owner": "docs", "expect": "x"}, "expect: unknown field"),
        ({"owner": "docs"}, "url: is missing"),
    ],
)
def test_a_submission_names_a_url_and_a_known_owner_and_nothing_else(
    store: Store, row: dict[str, str], words: str
) -> None:
    before = list(store.owners())
    (told,) = submit(store, row)
    assert (told.verdict, told.link) == (Verdict.REFUSED, None)
    assert words in told.reason
    assert (list(store.links()), list(store.owners())) == ([], before)


def test_without_any_owner_it_is_refused(store: Store) -> None:
    (told,) = submit(store, PYTHON, owner=None)
    assert told.reason == "owner: is missing"


def test_a_header_with_more_is_refused_whole(store: Store) -> None:
    with pytest.raises(InvalidInput, match=r"notify: unknown column.*nothing else"):
        submit(store, PYTHON, columns=("url", "owner", "notify"))
    with pytest.raises(InvalidInput, match="there is no column 'url'"):
        submit(store, {"owner": "docs"}, columns=("owner",))
    assert list(store.links()) == []


def test_somebody_who_watches_it_meanwhile_is_found(store: Store) -> None:
    class Overtaken:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def save_registry(self, **written: Any) -> None:
            if not list(store.links()):
                submit(store, PYTHON, owner="sre")
            store.save_registry(**written)

    overtaken: Any = Overtaken()
    python, peps = submit(overtaken, PYTHON, "https://peps.python.org/")
    assert python.link is not None
    assert (python.verdict, python.link.owner, peps.verdict) == (Verdict.WATCHED, "sre", Verdict.ACCEPTED)


def test_ids_are_free_by_one_listing_and_not_asked_for_one_by_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*_: object, **__: object) -> None:
        raise AssertionError("the listing has said it already")

    monkeypatch.setattr(store, "get_link", ask)
    told = submit(store, PYTHON, "https://peps.python.org/")
    assert [each.verdict for each in told] == [Verdict.ACCEPTED] * 2
