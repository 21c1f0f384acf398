"""When a whole run is doubted: many hosts at once, never one dead host."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from linkwatch_pipeline.domain.breaker import BreakerRules, read_signs, silent_hosts, suspicion
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.runs import HostChain
from linkwatch_pipeline_tests.builders import MONDAY, RUN_ID

RULES = BreakerRules()


def chains(**hosts: Mapping[str, int]) -> list[HostChain]:
    """One host for each name, with its counts."""
    return [
        HostChain(
            run_id=RUN_ID,
            host=name,
            head=None,
            head_ready_at=MONDAY,
            remaining=0,
            total=sum(counts.values()),
            counts=counts,
        )
        for name, counts in hosts.items()
    ]


def well(count: int) -> dict[str, dict[str, int]]:
    return {f"well{n}": {"reachable": 2} for n in range(count)}


def judged(
    run: list[HostChain],
    *,
    broken: int = 0,
    silent_before: tuple[str, ...] = (),
    canaries: Mapping[str, Outcome] | None = None,
    rules: BreakerRules = RULES,
) -> str | None:
    hosts = [f"well{n}" for n in range(broken)]
    return suspicion(read_signs(run, broken_hosts=hosts, silent_before=silent_before, canaries=canaries or {}), rules)


@pytest.mark.parametrize(
    ("hosts", "broken", "suspect"),
    [(6, 5, False), (6, 6, True), (1, 1, False), (100, 10, False), (100, 11, True), (60, 6, False), (60, 7, True)],
)
def test_new_breaks_on_too_many_hosts_are_suspect(hosts: int, broken: int, suspect: bool) -> None:
    assert (judged(chains(**well(hosts)), broken=broken) is not None) is suspect


def test_one_dead_host_never_makes_a_run_suspect_however_many_links_it_has() -> None:
    dead = chains(**well(3), dead={"uncertain": 5000})
    assert judged(dead) is None
    assert judged(chains(**well(3), dead={"broken": 5000}), broken=1) is None


def test_hosts_without_any_certain_answer_count_with_those_that_broke() -> None:
    silent = {f"silent{n}": {"uncertain": 1} for n in range(3)}
    assert judged(chains(**well(9), **silent), broken=2) is None
    why = judged(chains(**well(9), **silent), broken=3)
    assert why == "6 of 12 hosts broke anew or gave no certain answer, more than 5"


def test_a_host_that_gave_no_answer_in_the_trusted_run_either_is_nothing_new() -> None:
    silent = {f"silent{n}": {"uncertain": 1} for n in range(6)}
    run = chains(**well(20), **silent)
    assert judged(run) is not None
    assert judged(run, silent_before=("silent0",)) is None
    assert silent_hosts(run) == set(silent)


@pytest.mark.parametrize(
    ("uncertain", "reachable", "suspect"), [(20, 40, False), (21, 40, True), (25, 75, False), (26, 74, True)]
)
def test_too_many_uncertain_links_are_suspect(uncertain: int, reachable: int, suspect: bool) -> None:
    mixed = {"a": {"uncertain": uncertain, "reachable": reachable}, "b": {"reachable": 0, "uncertain": 0}}
    worst = {"worst": {"uncertain": uncertain, "reachable": 0}}
    share = (judged(chains(**mixed, **worst)) or "").startswith(f"{uncertain} of")
    assert share is (uncertain > max(20, 0.25 * (2 * uncertain + reachable)))
    assert judged(chains(a=mixed["a"])) is None  # one host alone never does it


def test_jobs_without_an_observation_say_nothing() -> None:
    signs = read_signs(
        chains(a={"expired": 30, "abandoned": 3, "cancelled": 1}, b={"reachable": 1, "expired": 2}),
        broken_hosts=(),
        silent_before=(),
        canaries={},
    )
    assert (signs.checked_hosts, signs.checked_links, signs.troubled_hosts) == (1, 1, 0)


@pytest.mark.parametrize(
    ("outcomes", "suspect"),
    [
        ("uur", True),
        ("ubr", True),
        ("urr", False),
        ("ccr", True),  # a page that lacks its text may be a sign-in page of our own network
        ("ttr", False),  # a host that asks for a pause has answered
        ("u", True),
        ("ur", False),
        ("uu", True),
        ("rrr", False),
        ("", False),
    ],
)
def test_two_of_three_failing_canaries_are_suspect(outcomes: str, suspect: bool) -> None:
    named = {
        "u": Outcome.UNCERTAIN,
        "b": Outcome.BROKEN,
        "r": Outcome.REACHABLE,
        "c": Outcome.CONTENT_CHANGED,
        "t": Outcome.THROTTLED,
    }
    canaries = {f"canary-{n}": named[letter] for n, letter in enumerate(outcomes)}
    assert (judged(chains(**well(3)), canaries=canaries) is not None) is suspect


def test_rules_can_be_changed_and_switched_off() -> None:
    run = chains(**well(10))
    assert judged(run, broken=3, rules=BreakerRules(hosts=2)) is not None
    assert judged(run, broken=10, rules=BreakerRules(hosts_share=1.0)) is None
    assert judged(run, broken=10, rules=BreakerRules(is_on=False)) is None


def test_all_reasons_are_told() -> None:
    why = judged(chains(**well(9)), broken=6, canaries={"home": Outcome.BROKEN})
    assert why is not None
    assert why.endswith("; 1 of 1 canaries fail: home")
