"""The state machine: with one confirmation it is SPEC 4's table, with more it waits (SPEC 12.1)."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.domain.links import Link, LinkState
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.transitions import Transition, advance, escaped_id, transition_id
from linkwatch_pipeline_tests.builders import MONDAY, a_link

OUTCOMES = st.sampled_from(Outcome)
NEUTRAL = (Outcome.THROTTLED, Outcome.UNCERTAIN, Outcome.CONTENT_CHANGED)
R, B, T, U, C = Outcome.REACHABLE, Outcome.BROKEN, Outcome.THROTTLED, Outcome.UNCERTAIN, Outcome.CONTENT_CHANGED


def play(link: Link, outcomes: list[Outcome], *, default_confirm: int = 1) -> tuple[Link, list[Transition]]:
    """Apply outcomes in sequence, one a week."""
    told = []
    for outcome in outcomes:
        sequence = link.last_sequence + 1
        link, transition = advance(
            link,
            outcome=outcome,
            sequence=sequence,
            job_id=f"{sequence}:{link.id}",
            at=MONDAY + sequence * timedelta(days=7),
            default_confirm=default_confirm,
        )
        told += [transition] if transition is not None else []
    return link, told


@pytest.mark.parametrize(
    ("before", "outcome", "after", "told"),
    [
        (LinkState.UNKNOWN, R, LinkState.REACHABLE, False),
        (LinkState.UNKNOWN, B, LinkState.BROKEN, True),
        (LinkState.REACHABLE, R, LinkState.REACHABLE, False),
        (LinkState.REACHABLE, B, LinkState.BROKEN, True),
        (LinkState.BROKEN, B, LinkState.BROKEN, False),
        (LinkState.BROKEN, R, LinkState.REACHABLE, True),
        *((state, neutral, state, False) for state in LinkState for neutral in NEUTRAL),
    ],
)
def test_with_one_confirmation_it_is_the_table(
    before: LinkState, outcome: Outcome, after: LinkState, told: bool
) -> None:
    link, transitions = play(replace(a_link(), state=before, version=4), [outcome])
    assert link.state is after
    assert link.version == (5 if before is not after else 4)
    assert [(t.from_state, t.to_state) for t in transitions] == ([(before, after)] if told else [])


def test_the_classic_proof() -> None:
    link, told = play(a_link(), [R, B, B, R])
    assert (link.state, link.version, link.last_sequence) == (LinkState.REACHABLE, 3, 3)
    assert [t.id for t in told] == ["guide:2", "guide:3"]


def test_a_transition_tells_the_whole_story() -> None:
    _, told = play(a_link(), [R, B, U, R])
    assert told[0] == Transition(
        id="guide:2",
        link_id="guide",
        from_state=LinkState.REACHABLE,
        to_state=LinkState.BROKEN,
        version=2,
        sequence=1,
        job_id="1:guide",
        at=MONDAY + timedelta(days=7),
        since=MONDAY,
    )
    assert (told[1].since, told[1].at) == (MONDAY + timedelta(days=7), MONDAY + timedelta(days=21))


@pytest.mark.parametrize("neutral", NEUTRAL)
def test_an_ambiguous_answer_between_two_good_ones_makes_no_recovery(neutral: Outcome) -> None:
    assert play(a_link(), [R, neutral, R])[1] == []


@given(st.lists(OUTCOMES, max_size=30))
def test_with_one_confirmation_only_the_decisive_outcomes_matter(outcomes: list[Outcome]) -> None:
    link, told = play(a_link(), outcomes)
    decisive = [outcome for outcome in outcomes if outcome not in NEUTRAL]
    changes = [new for old, new in zip([None, *decisive], decisive, strict=False) if new is not old]
    assert link.state.value == (decisive[-1].value if decisive else "unknown")
    assert link.version == len(changes)
    assert len(told) == len(changes) - (1 if changes and changes[0] is R else 0)
    assert [t.version for t in told] == sorted({t.version for t in told})


@given(st.lists(OUTCOMES, max_size=30), st.integers(1, 5))
def test_breaking_needs_that_many_failures_since_the_last_success(outcomes: list[Outcome], confirm: int) -> None:
    link = a_link()
    for outcome in outcomes:
        before = link
        link, told = play(link, [outcome], default_confirm=confirm)
        if told and told[0].to_state is LinkState.BROKEN:
            assert link.broken_streak == confirm
            assert before.broken_streak == confirm - 1
    since_success = outcomes[len(outcomes) - outcomes[::-1].index(R) :] if R in outcomes else outcomes
    assert link.broken_streak == since_success.count(B)
    assert (link.state is LinkState.BROKEN) is (since_success.count(B) >= confirm)


@pytest.mark.parametrize(
    ("outcomes", "told"),
    [
        ([R, B, R], []),
        ([R, B, B], ["broken"]),
        ([R, B, T, U, C, B], ["broken"]),  # what says nothing neither confirms nor clears
        ([R, B, R, B], []),
        ([B, B, R], ["broken", "reachable"]),
        ([B, R], []),
    ],
)
def test_two_confirmations_keep_a_single_failure_quiet(outcomes: list[Outcome], told: list[str]) -> None:
    assert [t.to_state.value for t in play(a_link(), outcomes, default_confirm=2)[1]] == told


def test_the_links_own_setting_goes_before_the_general_one() -> None:
    assert play(a_link(confirm=3), [B, B], default_confirm=1)[0].state is LinkState.UNKNOWN
    assert play(a_link(confirm=1), [B], default_confirm=3)[0].state is LinkState.BROKEN


@given(st.lists(OUTCOMES, max_size=10), OUTCOMES, st.integers(0, 20), st.integers(1, 3))
def test_an_older_or_equal_sequence_changes_nothing(
    outcomes: list[Outcome], late: Outcome, sequence: int, confirm: int
) -> None:
    link, _ = play(a_link(), outcomes, default_confirm=confirm)
    if sequence > link.last_sequence:
        return
    after = advance(link, outcome=late, sequence=sequence, job_id="late", at=MONDAY, default_confirm=confirm)
    assert after == (link, None)


@given(st.permutations(list(enumerate([R, B, T, B, R, B]))))
def test_whatever_the_order_of_arrival_the_newest_decisive_look_wins(arrivals: list[tuple[int, Outcome]]) -> None:
    link = a_link()
    applied: list[Outcome] = []
    for sequence, outcome in arrivals:
        if sequence > link.last_sequence:
            applied.append(outcome)
        link, _ = advance(link, outcome=outcome, sequence=sequence, job_id="j", at=MONDAY, default_confirm=1)
    assert link.last_sequence == 5
    decisive = [outcome for outcome in applied if outcome not in NEUTRAL]
    assert link.state.value == decisive[-1].value


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", fullmatch=True), st.integers(1, 10**9))
def test_an_escaped_id_is_safe_everywhere_and_says_which_it_was(link_id: str, version: int) -> None:
    plain = transition_id(link_id, version)
    escaped = escaped_id(plain)
    assert set(escaped) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
    assert len(escaped) <= 256
    assert re.sub("_(..)", lambda escape: chr(int(escape[1], 16)), escaped) == plain
