"""Whose files are whose."""

from __future__ import annotations

import pytest

from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline.domain.owner_map import everything_of, parse_owner_map


@pytest.mark.parametrize(
    ("pattern", "file", "matches"),
    [
        ("*", "a/b.md", True),
        ("*.md", "a/b.md", True),
        ("*.md", "a/b.txt", False),
        ("/*.md", "a/b.md", False),
        ("/*.md", "b.md", True),
        ("travel/", "a/travel/x/b.md", True),
        ("travel/", "travel", False),
        ("/travel/", "a/travel/b.md", False),
        ("/travel", "travel/b.md", True),
        ("pages/travel", "pages/travel/x/b.md", True),
        ("pages/travel", "other/pages/travel/b.md", False),
        ("pages/*", "pages/b.md", True),
        ("pages/**/faq.md", "pages/faq.md", True),
        ("pages/**/faq.md", "pages/a/b/faq.md", True),
        ("**/faq.md", "a/faq.md", True),
        ("pages/**", "pages/a/b.md", True),
        ("a?.md", "ab.md", True),
        ("a.md", "aXmd", False),
    ],
)
def test_patterns_mean_what_they_mean_in_codeowners(pattern: str, file: str, matches: bool) -> None:
    owners = parse_owner_map(f"* rest\n{pattern} team\n")
    assert owners.team_of(file) == ("team" if matches else "rest")


def test_the_last_line_that_matches_decides() -> None:
    text = "\ufeff# whose is what\r\n\r\n*   docs team   # the rest\r\n/a/\t@org/a-team\r\n/a/b.md @b-team\r\n"
    owners = parse_owner_map(text)
    assert [owners.team_of(file) for file in ("x.md", "a/x.md", "a/b.md")] == ["docs team", "a-team", "b-team"]
    assert owners.teams == ("a-team", "b-team", "docs team")


def test_a_file_of_nobody_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"no line matches 'b/x.md'"):
        parse_owner_map("/a/ a-team").team_of("b/x.md")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "names no team"),
        ("* a\n/b/", "line 2: '/b/' has no team"),
        ("* @a @b", "line 1: '@a @b' is more than one team"),
        ("* a@example.com", "line 1"),
        ("!x a", "line 1: '!x' uses"),
        ("[ab] a", "line 1"),
        ("/ a", "line 1: '/' matches nothing"),
        ("*a*a*a*a*a*a*a*a*a a", "more than 8 wildcards"),
        ("* te/am", "line 1: 'te/am' is not a team name"),
    ],
)
def test_a_wrong_line_is_named(text: str, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem.replace("[", r"\[")):
        parse_owner_map(text)


def test_one_team_may_own_everything() -> None:
    assert everything_of("docs").team_of("a/b/c.md") == "docs"
    with pytest.raises(InvalidInput):
        everything_of("-")
