"""`linkwatch simulate`: a shape or the home's own links, and a code that says whether they fit the window."""

from __future__ import annotations

import pytest

from linkwatch_pipeline_tests.entrypoints.terminal import SITE, Terminal


def test_a_run_that_fits_ends_with_0_and_makes_no_home(terminal: Terminal) -> None:
    said = terminal.fine("simulate", "--links", "600", "--hosts", "100", "--busiest", "100")
    assert "bound         5.0 min" in said.out
    assert "done by 09:30: yes; within the run's 6 hours: yes" in said.out
    assert not terminal.home.exists()


def test_a_run_that_does_not_fit_ends_with_1_and_says_what_would_help(terminal: Terminal) -> None:
    said = terminal.run("simulate", "--links", "9000", "--hosts", "1000", "--busiest", "8000")
    assert said.code == 1
    assert "spread over 2 days" in said.out
    assert "with 2 visits at once on busiest.example" in said.out
    allowed = terminal.fine("simulate", "--links", "9000", "--hosts", "1000", "--busiest", "8000", "--allowance", "2")
    assert "8000 x (2 + 1) s, 2 at once" in allowed.out


def test_the_home_s_own_links_are_simulated_without_the_retired(fixture_home: Terminal) -> None:
    fixture_home.fine("register", "one", SITE, "--owner", "docs", "--notify", "docs@example.com")
    fixture_home.fine("register", "two", f"{SITE}/2", "--owner", "docs")
    fixture_home.fine("retire", "two")
    document = fixture_home.fine("simulate", "--json").document
    assert (document["links"], document["hosts"], document["busiest_host"]) == (1, 1, "127.0.0.1")
    assert document["bound_seconds"] == 2


def test_what_the_home_s_hosts_agreed_to_is_counted_slot_by_slot(terminal: Terminal) -> None:
    for number in range(40):
        url = f"https://docs.example.com/{number}"
        terminal.fine("register", f"page-{number}", url, "--owner", "docs", "--notify", "docs@example.com")
    alone = terminal.fine("simulate", "--json").document
    with (terminal.home / "linkwatch.toml").open("a") as settings:
        settings.write('\n[allowances."docs.example.com"]\nvisits = 2\nagreed_with = "Ada, 2026-11-02"\n')
    agreed = terminal.fine("simulate", "--json").document
    assert (alone["busiest_links"], agreed["busiest_links"], agreed["hosts"]) == (40, 40, 1)
    assert 20 * 3 - 1 <= agreed["busiest_seconds"] < alone["busiest_seconds"] == 40 * 3 - 1
    assert "40 x (2 + 1) s, 2 at once" in terminal.fine("simulate").out
    more = terminal.fine("simulate", "--allowance", "4", "--json").document
    assert more["busiest_seconds"] < agreed["busiest_seconds"]


def test_a_seed_varies_the_visits_and_is_repeatable(terminal: Terminal) -> None:
    words = ("simulate", "--links", "100", "--json")
    first, again = (terminal.fine(*words, "--seed", "7").document for _ in range(2))
    assert first == again != terminal.fine(*words).document


@pytest.mark.parametrize(
    "words",
    [
        ("--hosts", "3"),
        ("--links", "10", "--hosts", "11"),
        ("--links", "10", "--hosts", "2", "--busiest", "4"),
        ("--links", "0"),
        ("--links", "10", "--cooldown", "0.5"),
        ("--links", "10", "--cooldown", "nan"),
        ("--links", "10", "--mean-seconds", "nan"),
        (),
    ],
)
def test_what_cannot_be_simulated_is_refused(terminal: Terminal, words: tuple[str, ...]) -> None:
    terminal.refused("simulate", *words)
