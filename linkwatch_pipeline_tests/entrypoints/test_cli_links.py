"""`init owner register update retire links`: what a person types, and what comes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkwatch_pipeline_tests.entrypoints.terminal import FIXTURE_NOTICE, SITE, Terminal

URL = "https://docs.python.org/3/"
NEW_OWNER = ("--owner", "docs", "--notify", "docs@example.com")


def test_a_home_is_made_by_init_and_only_once(terminal: Terminal) -> None:
    said = terminal.fine("init")
    assert str(terminal.home) in said.out
    assert said.err == ""
    assert "a linkwatch home already" in terminal.refused("init")


def test_a_home_is_made_on_first_use(terminal: Terminal) -> None:
    assert terminal.fine("links").out == "no links\n"
    assert (terminal.home / "linkwatch.sqlite3").exists()


def test_the_variable_names_the_home(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKWATCH_HOME", str(terminal.home))
    assert terminal.run_line(["links", "--json"]).document == []
    assert terminal.home.is_dir()


def test_without_a_name_the_home_is_in_the_working_folder(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LINKWATCH_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert terminal.run_line(["init"]).code == 0
    assert (tmp_path / ".linkwatch" / "linkwatch.toml").exists()


def test_every_command_on_a_fixture_home_says_so_on_stderr(terminal: Terminal) -> None:
    commands = (
        ("init", "--fixture", "127.0.0.1:8765"),
        ("register", "guide", SITE, *NEW_OWNER),
        ("update", "guide", "--expect", "guide-v1"),
        ("record", "guide", SITE, "--sequence", "0", "--status", "200"),
        ("links", "--json"),
        ("inspect", "--json"),
        ("outbox", "--json"),
        ("deliver", "--json"),
        ("owner", "--list"),
        ("retire", "guide"),
    )
    for command in commands:
        assert terminal.fine(*command).err == FIXTURE_NOTICE, command


@pytest.mark.parametrize("pairs", ["10.0.0.1:8765", "127.0.0.1:80", "nonsense"])
def test_a_fixture_that_is_not_on_loopback_makes_no_home(terminal: Terminal, pairs: str) -> None:
    assert "loopback" in terminal.refused("init", "--fixture", pairs)
    assert not terminal.home.exists()


def test_owners_are_set_and_listed(terminal: Terminal) -> None:
    terminal.fine("owner", "docs team", "docs@example.com")
    terminal.fine("owner", "docs team", "new@example.com")
    assert terminal.fine("owner", "--list").out == (
        "TEAM       ADDRESS          DELIVERY\ndocs team  new@example.com  each\n"
    )
    for words in (("owner",), ("owner", "docs"), ("owner", "docs", "docs@example.com", "--list")):
        assert "--list" in terminal.refused(*words)


def test_a_registered_link_is_listed_with_every_field_of_the_contract(terminal: Terminal) -> None:
    said = terminal.fine("register", "guide", URL + "#top", *NEW_OWNER, "--expect", "Python", "--confirm", "2")
    assert said.out == f"registered: guide {URL}, owner docs\n"
    assert terminal.fine("links", "--json").document == [
        {
            "id": "guide",
            "url": URL,
            "owner": "docs",
            "marker": "Python",
            "confirm": 2,
            "config_version": 1,
            "state": "unknown",
            "state_since": None,
            "version": 0,
            "last_sequence": -1,
            "broken_streak": 0,
            "retired_at": None,
            "places": [],
            "ack": None,
            "muted_until": None,
        }
    ]
    assert (
        "nothing changed"
        in terminal.fine("register", "guide", URL, *NEW_OWNER, "--expect", "Python", "--confirm=2").out
    )


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1/", "(blocked_address): 127.0.0.1 port 80 is not a public address"),
        ("http://[::1]/", "(blocked_address): ::1 port 80 is not a public address"),
        ("http://169.254.169.254/latest", "(blocked_address): 169.254.169.254 port 80 is not a public address"),
        ("http://localhost/", "(blocked_address): 'localhost' is not a name of the public Internet"),
        ("http://wiki.internal/", "(blocked_address): 'wiki.internal' is not a name of the public Internet"),
        ("https://docs.python.org:8443/", "(blocked_port): port 8443 is not 80 or 443"),
    ],
)
def test_what_is_never_visited_is_said_when_it_is_registered(terminal: Terminal, url: str, why: str) -> None:
    warning = f"warning: guide is watched, but every check of it will be uncertain {why}\n"
    assert terminal.fine("register", "guide", url, *NEW_OWNER).err == warning
    assert terminal.fine("update", "guide", "--expect", "Python").err == ""
    assert terminal.fine("update", "guide", URL).err == ""
    assert terminal.fine("update", "guide", url).err == warning


def test_a_fixture_home_warns_of_all_but_its_fixtures(fixture_home: Terminal) -> None:
    assert "warning" not in fixture_home.fine("register", "guide", SITE, *NEW_OWNER).err
    assert "warning: other" in fixture_home.fine("register", "other", "http://127.0.0.1:9999/", *NEW_OWNER).err


def test_links_are_filtered_by_owner_and_state(terminal: Terminal) -> None:
    terminal.fine("register", "guide", URL, *NEW_OWNER)
    assert [link["id"] for link in terminal.fine("links", "--owner", "docs", "--json").document] == ["guide"]
    assert terminal.fine("links", "--state", "broken", "--json").document == []
    assert "'ops'" in terminal.refused("links", "--owner", "ops")
    assert "guide  unknown  -      docs   https://docs.python.org/3/" in terminal.fine("links").out


def test_update_changes_what_is_given(terminal: Terminal) -> None:
    terminal.fine("register", "guide", URL, *NEW_OWNER, "--expect", "Python", "--confirm", "2")
    terminal.fine("update", "guide", "--no-expect", "--no-confirm", "--url", "https://docs.python.org/4/")
    (link,) = terminal.fine("links", "--json").document
    assert (link["marker"], link["confirm"], link["url"]) == (None, None, "https://docs.python.org/4/")
    assert link["config_version"] == 2
    terminal.fine("update", "guide", URL, "--owner", "docs")
    assert terminal.fine("links", "--json").document[0]["url"] == URL


def test_an_update_that_says_nothing_or_two_things_is_refused(terminal: Terminal) -> None:
    terminal.fine("register", "guide", URL, *NEW_OWNER)
    assert "Say what to change" in terminal.refused("update", "guide")
    assert "exclude each other" in terminal.refused("update", "guide", "--expect", "x", "--no-expect")
    assert "exclude each other" in terminal.refused("update", "guide", URL, "--url", URL)
    assert "no link 'other'" in terminal.refused("update", "other", "--no-expect")


def test_a_retired_link_says_so_and_comes_back(terminal: Terminal) -> None:
    terminal.fine("register", "guide", URL, *NEW_OWNER)
    assert terminal.fine("retire", "guide").out.startswith("retired: guide")
    assert "unknown (retired)" in terminal.fine("links").out
    assert terminal.fine("links", "--json").document[0]["retired_at"].endswith("Z")
    assert terminal.fine("register", "guide", URL, "--owner", "docs").out.startswith("revived: guide")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("register", "a#b", URL, *NEW_OWNER), "'a#b' is not a link id"),
        (("register", "a:b", URL, *NEW_OWNER), "'a:b' is not a link id"),
        (("register", "a b", URL, *NEW_OWNER), "'a b' is not a link id"),
        (("register", "a" * 300, URL, *NEW_OWNER), "(302 characters) is not a link id"),
        (("register", "a", "docs.python.org", *NEW_OWNER), "does not begin with http"),
        (("register", "a", "http://", *NEW_OWNER), "has no host"),
        (("register", "a", "gopher://docs.python.org/", *NEW_OWNER), "the scheme 'gopher'"),
        (("register", "a", "https://me:hunter2@docs.python.org/", *NEW_OWNER), "carries credentials"),
        (("register", "a", URL, "--owner", "docs", "--notify", "nobody"), "'nobody' is not an e-mail address"),
        (("register", "a", URL, "--owner", "docs", "--notify", "a@b.com\nBcc: c@d.com"), "not an e-mail address"),
        (("register", "a", URL, "--owner", "do#cs"), "not a team name"),
        (("register", "a", URL), "--owner"),
        (("register", "a", URL, *NEW_OWNER, "--expect", " "), "expected text"),
        (("register", "a", URL, *NEW_OWNER, "--confirm", "0"), "is not a count"),
        (("register", "a", URL, *NEW_OWNER, "--confirm", "1.5"), "not a whole number"),
        (("owner", "docs", "docs"), "not an e-mail address"),
        (("retire", "a:b"), "not a link id"),
        (("links", "--state", "sad"), "'sad' is not one of"),
        (("nonsense",), "No such command 'nonsense'"),
        (("links", "--nonsense"), "--nonsense"),
    ],
)
def test_bad_input_is_refused_in_a_sentence_and_nothing_is_written(
    terminal: Terminal, words: tuple[str, ...], problem: str
) -> None:
    sentence = terminal.refused(*words)
    assert problem in sentence
    assert "hunter2" not in sentence
    assert not terminal.home.exists()


def test_an_unknown_setting_is_refused_by_name(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal.fine("init")
    (terminal.home / "linkwatch.toml").write_text("confrim = 2\n")
    assert "Did you mean confirm" in terminal.refused("register", "guide", URL, *NEW_OWNER)
    (terminal.home / "linkwatch.toml").write_text("")
    monkeypatch.setenv("LINKWATCH_MODE", "fast")
    assert "'LINKWATCH_MODE'" in terminal.refused("register", "guide", URL, *NEW_OWNER)
    monkeypatch.delenv("LINKWATCH_MODE")
    assert terminal.fine("links", "--json").document == []


def test_an_id_with_another_url_is_refused(terminal: Terminal) -> None:
    terminal.fine("register", "guide", URL, *NEW_OWNER)
    before = terminal.records()
    assert "linkwatch update guide" in terminal.refused("register", "guide", "https://docs.python.org/4/", *NEW_OWNER)
    assert terminal.records() == before
