"""`ack`, `mute`, `unmute`, `mutes`, `release-notices`, `discard-notices`, and how teams are told."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.bootstrap import build_app
from linkwatch_pipeline.domain.runs import Ruling, RulingKind, Run, RunState, weekly_run_id
from linkwatch_pipeline.domain.timestamps import week_start
from linkwatch_pipeline_tests.entrypoints.terminal import Terminal

URL = "https://docs.example.com/guide"
NOW = SystemClock().now()
NEXT_WEEK = (NOW + timedelta(days=9)).date().isoformat()
RUN_ID = weekly_run_id(week_start(NOW))


@pytest.fixture
def broken(terminal: Terminal) -> Terminal:
    terminal.fine("register", "guide", URL, "--owner", "docs", "--notify", "docs@example.com")
    terminal.fine("record", "guide", URL, "--sequence", "0", "--status", "404")
    return terminal


def test_an_acknowledged_break_says_so_everywhere(broken: Terminal) -> None:
    assert broken.fine("ack", "guide", "--reason", "ticket 7", "--by", "ana").out == (
        "acknowledged: guide, until it is reachable again\n"
    )
    assert "broken (acknowledged)" in broken.fine("links").out
    assert "broken (acknowledged)" in broken.fine("inspect", "guide").out
    (link,) = broken.fine("links", "--json").document
    assert (link["ack"]["reason"], link["ack"]["by"]) == ("ticket 7", "ana")
    broken.fine("record", "guide", URL, "--sequence", "1", "--status", "200")
    assert broken.fine("links", "--json").document[0]["ack"] is None
    assert "only a broken one" in broken.refused("ack", "guide", "--reason", "r")
    assert "reason" in broken.refused("ack", "guide")


def test_a_mute_is_made_shown_and_ended(broken: Terminal) -> None:
    assert broken.fine("mutes").out == "nothing is muted\n"
    said = broken.fine("mute", "docs.example.com", "--until", NEXT_WEEK, "--reason", "moving", "--by", "ana").out
    assert said == f"muted: host:docs.example.com until {NEXT_WEEK}T00:00:00Z\n"
    assert f"broken (muted until {NEXT_WEEK})" in broken.fine("links").out
    assert broken.fine("links", "--json").document[0]["muted_until"] == f"{NEXT_WEEK}T00:00:00.000000Z"
    assert broken.fine("inspect", "--json").document["links"][0]["muted_until"] is not None
    said = broken.fine("deliver").out
    assert "muted: 1" in said
    (known,) = broken.fine("mutes", "--json").document
    assert (known["target"], known["active"], known["links"], known["broken"]) == ("host:docs.example.com", True, 1, 1)
    assert "moving" in broken.fine("mutes").out
    assert broken.fine("unmute", "docs.example.com").out == "no longer muted: host:docs.example.com\n"
    assert "ended " in broken.fine("mutes").out
    assert broken.fine("deliver", "--json").document["sent"] == 1
    assert "not muted" in broken.refused("unmute", "docs.example.com")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("mute", "guide", "--reason", "r"), "--until"),
        (("mute", "guide", "--until", NEXT_WEEK), "--reason"),
        (("mute", "guide", "--until", "1999-01-01", "--reason", "r"), "over already"),
        (("mute", "guide", "--until", "2999-01-01", "--reason", "r"), "too far away"),
        (("mute", "nobody", "--until", NEXT_WEEK, "--reason", "r"), "no link 'nobody'"),
        (("release-notices", RUN_ID), "no run is held"),
        (("discard-notices", "monday"), "no run 'monday'"),
        (("owner", "web", "--delivery", "digest"), "give its address"),
        (("owner", "--list", "--delivery", "digest"), "exclude each other"),
    ],
)
def test_what_cannot_be_is_refused_and_says_why(broken: Terminal, words: tuple[str, ...], complaint: str) -> None:
    assert complaint in broken.refused(*words)


@pytest.mark.parametrize(
    ("command", "kind"), [("release-notices", RulingKind.RELEASED), ("discard-notices", RulingKind.DISCARDED)]
)
def test_a_held_run_is_decided_about(broken: Terminal, midweek: datetime, command: str, kind: RulingKind) -> None:
    monday = week_start(midweek)
    run_id = weekly_run_id(monday)
    with build_app(broken.home, env={}) as app:
        app.store.create_run(Run(run_id=run_id, intended_at=monday, started_at=monday, state=RunState.CLOSED))
        held = Ruling(kind=RulingKind.HELD, at=midweek, why="7 of 9 hosts broke anew")
        assert app.store.rule_on_run(run_id, held, replaces=None)
    assert "notices held: 7 of 9 hosts broke anew" in broken.fine("inspect", "--run", run_id).out
    said = broken.run("health")
    assert (said.code, "run_suspect" in said.out) == (1, True)
    assert "0 notices" in broken.fine(command, run_id, "--by", "ana").out
    ruling = broken.fine("inspect", "--run", run_id, "--json").document["run"]["ruling"]
    assert (ruling["kind"], ruling["by"]) == (kind.value, "ana")
    assert "run_suspect" not in broken.run("health").out


def test_a_team_chooses_digests_and_keeps_them_with_a_new_address(broken: Terminal) -> None:
    said = broken.fine("owner", "docs", "--delivery", "digest").out
    assert said == "notices to docs go to docs@example.com, as one digest for each run\n"
    broken.fine("owner", "docs", "new@example.com")
    assert broken.fine("owner", "--list").out.splitlines()[1].split() == ["docs", "new@example.com", "digest"]
    broken.fine("register", "more", "https://docs.example.com/more", "--owner", "docs", "--notify", "new@example.com")
    broken.fine("owner", "docs", "--delivery", "each")
    assert broken.fine("owner", "--list").out.splitlines()[1].split()[-1] == "each"


EVIL = ["", "a\nlinkwatch: all is well", "\x1b[2J", "\udcff", "\0", "x" * 5000, "\u2067evil"]
COMMANDS = [
    ("mute", "HERE", "--until", NEXT_WEEK, "--reason", "r"),
    ("mute", "guide", "--until", "HERE", "--reason", "r"),
    ("mute", "guide", "--until", NEXT_WEEK, "--reason", "HERE"),
    ("mute", "guide", "--until", NEXT_WEEK, "--reason", "r", "--by", "HERE"),
    ("unmute", "HERE"),
    ("ack", "HERE", "--reason", "r"),
    ("ack", "guide", "--reason", "HERE"),
    ("release-notices", "HERE"),
    ("discard-notices", "HERE"),
    ("resume", "HERE"),
    ("dead-letters", "--redrive", "HERE"),
    ("owner", "docs", "--delivery", "HERE"),
]


@pytest.mark.parametrize("evil", EVIL, ids=ascii)
def test_whatever_somebody_writes_is_refused_in_one_clean_line(broken: Terminal, evil: str) -> None:
    for words in COMMANDS:
        sentence = broken.refused(*(evil if word == "HERE" else word for word in words))
        assert sentence.removesuffix("\n").isprintable(), words
    assert broken.fine("mutes").out == "nothing is muted\n"
    assert "acknowledged" not in broken.fine("links").out
