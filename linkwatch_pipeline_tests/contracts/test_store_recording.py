"""What every store promises about recording an observation (SPEC 5 and 14): `record` and the history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from linkwatch_pipeline.domain.errors import ConflictingContent, InvalidInput, NotFound, StaleWrite
from linkwatch_pipeline.domain.hosts import Departure
from linkwatch_pipeline.domain.links import Link, LinkState
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.domain.observations import Observation, RedirectHop
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.recording import Recorded, RecordKind
from linkwatch_pipeline.domain.runs import JobRecord, JobStatus
from linkwatch_pipeline.ports import ExportedWeek, Store
from linkwatch_pipeline_tests.builders import (
    MONDAY,
    RUN_ID,
    a_chain,
    a_job,
    a_link,
    a_run,
    after,
    an_observation,
    dispatched,
)


def record(store: Store, observation: Observation, *, confirm: int = 1) -> Recorded:
    return store.record(observation, default_confirm=confirm, now=observation.observed_at + timedelta(milliseconds=5))


def registered(store: Store, *links: Link) -> Link:
    for link in links:
        store.save_link(link, replaces=None)
    return links[0]


def contents(store: Store) -> list[list[Any]]:
    """All that recording can touch."""
    runs = list(store.runs())
    return [
        list(store.links()),
        list(store.observations()),
        list(store.transitions()),
        list(store.notices()),
        [job for run in runs for job in store.jobs(run.run_id)],
        [chain for run in runs for chain in store.chains(run.run_id)],
    ]


def stored(store: Store, link_id: str = "guide") -> Link:
    link = store.get_link(link_id)
    assert link is not None
    return link


class TestTheClassicProof:
    """200, 404, 404, 200."""

    def play(self, store: Store, link: Link) -> list[RecordKind]:
        return [record(store, an_observation(link, s, sequence=n)).kind for n, s in enumerate([200, 404, 404, 200], 1)]

    def check(self, store: Store) -> None:
        assert [o.status for o in store.observations()] == [200, 404, 404, 200]
        assert [(t.id, t.from_state, t.to_state) for t in store.transitions()] == [
            ("guide:2", LinkState.REACHABLE, LinkState.BROKEN),
            ("guide:3", LinkState.BROKEN, LinkState.REACHABLE),
        ]
        assert [(n.transition_id, n.status, n.attempts) for n in store.notices()] == [
            ("guide:2", NoticeStatus.PENDING, 0),
            ("guide:3", NoticeStatus.PENDING, 0),
        ]
        link = stored(store)
        assert (link.state, link.version, link.last_sequence) == (LinkState.REACHABLE, 3, 4)

    def test_it_gives_four_observations_two_transitions_and_two_pending_notices(self, store: Store) -> None:
        kinds = self.play(store, registered(store, a_link()))
        assert kinds == [RecordKind.APPLIED] * 4
        self.check(store)

    def test_doing_it_again_changes_nothing(self, store: Store) -> None:
        link = registered(store, a_link())
        self.play(store, link)
        before = contents(store)
        assert self.play(store, link) == [RecordKind.DUPLICATE] * 4
        assert contents(store) == before

    def test_another_store_on_the_same_storage_sees_the_same(self, open_store: Callable[[], Store]) -> None:
        first = open_store()
        link = registered(first, a_link())
        self.play(first, link)
        before = contents(first)
        first.close()
        second = open_store()
        try:
            self.check(second)
            assert contents(second) == before
            assert self.play(second, link) == [RecordKind.DUPLICATE] * 4
            assert contents(second) == before
        finally:
            second.close()


@pytest.mark.parametrize(
    ("looks", "state", "version", "transitions"),
    [
        ([404], LinkState.BROKEN, 1, ["guide:1"]),
        ([200], LinkState.REACHABLE, 1, []),
        ([200, 429, 200], LinkState.REACHABLE, 1, []),
        ([404, 429, 404], LinkState.BROKEN, 1, ["guide:1"]),
        ([404, 503, None, 401, 410], LinkState.BROKEN, 1, ["guide:1"]),
        ([None, 500, 429], LinkState.UNKNOWN, 0, []),
        ([404, 200, 404], LinkState.BROKEN, 3, ["guide:1", "guide:2", "guide:3"]),
    ],
)
def test_only_reachable_and_broken_move_the_state(
    store: Store, looks: list[int | None], state: LinkState, version: int, transitions: list[str]
) -> None:
    link = registered(store, a_link())
    for sequence, status in enumerate(looks):
        record(store, an_observation(link, status, sequence=sequence))
    after_all = stored(store)
    assert (after_all.state, after_all.version, after_all.last_sequence) == (state, version, len(looks) - 1)
    assert [t.id for t in store.transitions()] == transitions
    assert [n.transition_id for n in store.notices()] == transitions
    assert len(list(store.observations())) == len(looks)


def test_a_missing_marker_is_never_a_recovery(store: Store) -> None:
    link = registered(store, a_link(marker="guide-v1"))
    record(store, an_observation(link, 404, sequence=0))
    record(store, an_observation(link, 200, sequence=1, marker_found=False))
    assert stored(store).state is LinkState.BROKEN
    assert [o.outcome for o in store.observations()] == [Outcome.BROKEN, Outcome.CONTENT_CHANGED]
    assert [t.id for t in store.transitions()] == ["guide:1"]


@pytest.mark.parametrize(("own", "default", "needed"), [(None, 1, 1), (None, 2, 2), (3, 1, 3), (1, 3, 1)])
def test_a_link_breaks_after_as_many_failing_looks_as_it_or_the_setting_says(
    store: Store, own: int | None, default: int, needed: int
) -> None:
    link = registered(store, a_link(confirm=own))
    for sequence in range(needed):
        assert list(store.transitions()) == []
        record(store, an_observation(link, 404, sequence=sequence), confirm=default)
    assert [(t.id, t.sequence) for t in store.transitions()] == [("guide:1", needed - 1)]


def test_the_transition_and_its_notice_say_what_happened(store: Store) -> None:
    link = registered(store, a_link(also_used_by=("platform",)))
    record(store, an_observation(link, 200, sequence=0))
    broken = an_observation(link, 410, sequence=1)
    result = record(store, broken)
    (transition,) = store.transitions()
    (notice,) = store.notices()
    assert result.transition == transition
    assert (transition.sequence, transition.job_id, transition.at) == (1, "1:guide", broken.observed_at)
    assert transition.since == an_observation(link, 200, sequence=0).observed_at
    assert (notice.transition_id, notice.link_id, notice.url) == ("guide:2", "guide", link.url)
    assert (notice.owner, notice.also_used_by, notice.run_id, notice.job_id) == (
        "docs-team",
        ("platform",),
        None,
        "1:guide",
    )
    assert (notice.from_state, notice.to_state) == (LinkState.REACHABLE, LinkState.BROKEN)
    assert (notice.observed_status, notice.observed_reason) == (410, Reason.GONE)
    assert notice.observed_at == broken.observed_at
    assert notice.created_at == notice.release_at == broken.observed_at + timedelta(milliseconds=5)


def test_every_field_of_an_observation_comes_back(store: Store) -> None:
    link = registered(store, a_link(marker="guide"))
    full = an_observation(
        link,
        200,
        marker_found=True,
        content_complete=False,
        content_type="text/html; charset=utf-8",
        final_url="https://docs.example.com/guide/é",
        redirects=(RedirectHop(url=link.url, status=301), RedirectHop(url="https://docs.example.com/x", status=302)),
        tls_not_after=after(days=30),
        page_hints=("soft_404", "parked"),
        retry_of="an-earlier-job",
        started_at=after(microseconds=1),
    )
    bare = an_observation(link, None, sequence=1, final_url=None)
    record(store, full)
    record(store, bare)
    assert list(store.observations()) == [full, bare]


class TestReplayAndConflict:
    @pytest.mark.parametrize(
        "other",
        [
            {"started_at": after(hours=5), "observed_at": after(hours=5, seconds=1)},
            {"latency_ms": 9999, "bytes_read": 1, "final_url": None},
        ],
        ids=["times", "measures"],
    )
    @pytest.mark.parametrize("in_run", [False, True], ids=["by hand", "in a run"])
    def test_the_same_content_again_is_a_duplicate_whatever_its_times(
        self, store: Store, in_run: bool, other: dict[str, Any]
    ) -> None:
        link = registered(store, a_link())
        job = dispatched(store, [link])[0] if in_run else None
        first = an_observation(link, 404, job=job)
        record(store, first)
        before = contents(store)
        result = record(store, replace(first, **other))
        assert (result.kind, result.transition, result.link) == (RecordKind.DUPLICATE, None, stored(store))
        assert contents(store) == before

    @pytest.mark.parametrize(
        "other",
        [
            {"status": 200, "outcome": Outcome.REACHABLE, "reason": None},
            {"content_hash": "0" * 64},
            {"content_hash": None},
            {"config_version": 2},
            {"url": "https://docs.example.com/other"},
        ],
        ids=["status", "hash", "no hash", "configuration", "url"],
    )
    @pytest.mark.parametrize("in_run", [False, True], ids=["by hand", "in a run"])
    def test_a_job_id_with_other_content_is_refused_and_nothing_is_written(
        self, store: Store, in_run: bool, other: dict[str, Any]
    ) -> None:
        link = registered(store, a_link())
        job = dispatched(store, [link])[0] if in_run else None
        first = an_observation(link, 404, job=job)
        record(store, first)
        before = contents(store)
        with pytest.raises(ConflictingContent, match=first.job_id):
            record(store, replace(first, **other))
        assert contents(store) == before

    def test_a_marker_verdict_is_content_of_a_2xx_and_of_no_other_answer(self, store: Store) -> None:
        link = registered(store, a_link(marker="guide"))
        record(store, an_observation(link, 200, sequence=0, marker_found=True))
        with pytest.raises(ConflictingContent):
            record(store, an_observation(link, 200, sequence=0, marker_found=False))
        record(store, an_observation(link, 404, sequence=1, marker_found=True))
        again = record(store, an_observation(link, 404, sequence=1, marker_found=False))
        assert again.kind is RecordKind.DUPLICATE

    def test_a_job_id_with_another_sequence_is_refused(self, store: Store) -> None:
        link = registered(store, a_link())
        job = dispatched(store, [link])[0]
        first = an_observation(link, 404, job=job)
        record(store, first)
        before = contents(store)
        with pytest.raises(ConflictingContent):
            record(store, replace(first, sequence=first.sequence + 1))
        assert contents(store) == before

    def test_a_hand_check_with_another_sequence_under_the_same_job_id_is_refused(self, store: Store) -> None:
        link = registered(store, a_link())
        first = an_observation(link, 404, sequence=3)
        record(store, first)
        before = contents(store)
        with pytest.raises(ConflictingContent, match="3:guide"):
            record(store, replace(first, sequence=4))
        assert contents(store) == before

    def test_a_change_of_a_service_is_recorded_under_its_own_job_id_and_once(self, store: Store) -> None:
        link = registered(store, a_link("service-s1", confirm=1))
        told = replace(an_observation(link, 404, sequence=0), job_id="service:s1:1@2026-11-29T09:00:00Z")
        first = record(store, told)
        assert first.transition is not None
        before = contents(store)
        assert record(store, told).kind is RecordKind.DUPLICATE
        assert contents(store) == before

    def test_a_link_id_with_another_url_is_refused(self, store: Store) -> None:
        link = registered(store, a_link())
        before = contents(store)
        with pytest.raises(ConflictingContent, match="another URL"):
            record(store, replace(an_observation(link), url="https://docs.example.com/other"))
        assert contents(store) == before

    def test_a_sequence_that_a_hand_check_holds_is_refused_to_another_hand_check(self, store: Store) -> None:
        link = registered(store, a_link())
        record(store, an_observation(link, 200, sequence=3))
        before = contents(store)
        with pytest.raises(ConflictingContent, match="3"):
            record(store, replace(an_observation(link, 200, sequence=3), job_id="another"))
        assert contents(store) == before

    def test_a_run_job_whose_sequence_is_taken_ends_cancelled(self, store: Store) -> None:
        link = registered(store, a_link())
        job = dispatched(store, [link])[0]
        record(store, an_observation(link, 200, sequence=job.sequence))
        result = record(store, an_observation(link, 404, job=job))
        assert result.kind is RecordKind.SEQUENCE_TAKEN
        ended = store.get_job(RUN_ID, "guide")
        assert ended is not None
        assert (ended.status, ended.reason, ended.outcome) == (JobStatus.CANCELLED, Reason.SEQUENCE_TAKEN, None)
        assert result.chain is not None
        assert (result.chain.head, result.chain.remaining, result.chain.counts) == (None, 0, {"cancelled": 1})
        assert stored(store).state is LinkState.REACHABLE
        assert len(list(store.observations())) == 1

    def test_a_link_nobody_registered_is_not_found(self, store: Store) -> None:
        with pytest.raises(NotFound, match="guide"):
            record(store, an_observation(a_link()))
        assert contents(store) == [[], [], [], [], [], []]

    def test_a_job_that_its_run_does_not_have_is_not_found(self, store: Store) -> None:
        link = registered(store, a_link())
        store.create_run(a_run())
        before = contents(store)
        with pytest.raises(NotFound, match="guide"):
            record(store, an_observation(link, job=a_job(link)))
        assert contents(store) == before

    @pytest.mark.parametrize("sequence", [-1, 1.5, 10_000_000_000])
    def test_an_impossible_sequence_never_gets_in(self, store: Store, sequence: Any) -> None:
        """The doors refuse it with a better message; this is the last line."""
        link = registered(store, a_link())
        before = contents(store)
        with pytest.raises(InvalidInput, match="sequence: "):
            record(store, replace(an_observation(link), sequence=sequence))
        assert contents(store) == before


class TestOlderSequences:
    def test_they_stay_in_history_and_never_turn_the_state_back(self, store: Store) -> None:
        link = registered(store, a_link())
        record(store, an_observation(link, 200, sequence=5))
        before = stored(store)
        result = record(store, an_observation(link, 404, sequence=2))
        assert (result.kind, result.transition) == (RecordKind.HISTORY, None)
        assert stored(store) == before
        assert [(o.sequence, o.outcome) for o in store.observations()] == [(2, Outcome.BROKEN), (5, Outcome.REACHABLE)]
        assert list(store.notices()) == []

    def test_a_late_job_is_done_and_counted_all_the_same(self, store: Store) -> None:
        link = registered(store, a_link())
        job = dispatched(store, [link])[0]
        record(store, an_observation(link, 200, sequence=job.sequence + 3))
        result = record(store, an_observation(link, 404, job=job))
        assert result.kind is RecordKind.HISTORY
        assert result.chain is not None
        assert (result.chain.remaining, result.chain.counts) == (0, {"broken": 1})


class TestChangedConfiguration:
    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"config_version": 2, "marker": "guide-v2"}, Reason.CONFIG_CHANGED),
            ({"config_version": 2, "url": "https://docs.example.com/new"}, Reason.CONFIG_CHANGED),
            ({"config_version": 2, "retired_at": after(minutes=1)}, Reason.RETIRED),
        ],
        ids=["marker", "url", "retired"],
    )
    def test_the_old_job_ends_as_cancelled(self, store: Store, change: dict[str, Any], reason: Reason) -> None:
        link, other = a_link(), a_link("tour", "https://docs.example.com/tour")
        registered(store, link, other)
        job = dispatched(store, [link, other])[0]
        now = stored(store)
        changed = replace(now, **change)
        store.save_link(changed, replaces=now)
        result = record(store, an_observation(link, 404, job=job))
        assert (result.kind, result.link) == (RecordKind.CONFIG_CHANGED, changed)
        ended = store.get_job(RUN_ID, "guide")
        assert ended is not None
        assert (ended.status, ended.reason) == (JobStatus.CANCELLED, reason)
        assert result.chain == store.get_chain(RUN_ID, link.host)
        assert result.chain is not None
        assert (result.chain.head, result.chain.remaining, result.chain.counts) == ("tour", 1, {"cancelled": 1})
        assert list(store.observations()) == []
        assert stored(store) == changed

    def test_a_hand_check_of_the_old_configuration_is_refused(self, store: Store) -> None:
        link = registered(store, a_link())
        store.save_link(replace(link, marker="x", config_version=2), replaces=link)
        before = contents(store)
        with pytest.raises(ConflictingContent):
            record(store, an_observation(link))
        assert contents(store) == before


class TestCountingAJob:
    def host_of_three(self, store: Store) -> tuple[list[Link], list[JobRecord]]:
        links = [a_link(name, f"https://docs.example.com/{name}") for name in ("a", "b", "c")]
        registered(store, *links)
        return links, dispatched(store, links)

    def test_the_job_is_done_and_counted_once_with_what_was_seen(self, store: Store) -> None:
        links, jobs = self.host_of_three(store)
        seen = an_observation(links[0], 404, job=jobs[0])
        for _ in range(3):
            record(store, seen)
        done = store.get_job(RUN_ID, "a")
        assert done == replace(
            jobs[0],
            status=JobStatus.DONE,
            outcome=Outcome.BROKEN,
            reason=Reason.GONE,
            content_digest=seen.content_digest,
        )
        chain = store.get_chain(RUN_ID, "docs.example.com")
        assert chain == replace(
            a_chain(jobs),
            head="b",
            remaining=2,
            counts={"broken": 1},
            first_observed_at=seen.started_at,
            last_observed_at=seen.observed_at,
        )

    def test_the_next_head_is_ready_when_its_host_allows_it(self, store: Store) -> None:
        links, jobs = self.host_of_three(store)
        store.acquire_host("docs.example.com", token="t", job_id=jobs[0].job_id, now=MONDAY, skew=timedelta(0))
        store.release_host(
            "docs.example.com",
            token="t",
            departure=Departure(at=after(seconds=2), answered=True),
            cooldown=timedelta(seconds=1),
            chance=Random(0),
        )
        store.resend_head(a_chain(jobs), now=MONDAY)
        result = record(store, an_observation(links[0], job=jobs[0]))
        assert result.chain is not None
        assert (result.chain.head, result.chain.head_ready_at, result.chain.resends) == ("b", after(seconds=3), 0)

    def test_a_job_that_is_not_the_head_leaves_the_head_alone(self, store: Store) -> None:
        links, jobs = self.host_of_three(store)
        result = record(store, an_observation(links[2], job=jobs[2]))
        assert result.chain is not None
        assert (result.chain.head, result.chain.remaining, result.chain.counts) == ("a", 2, {"reachable": 1})

    def test_the_duplicate_of_a_committed_job_tells_the_chain_as_it_is(self, store: Store) -> None:
        links, jobs = self.host_of_three(store)
        record(store, an_observation(links[0], job=jobs[0]))
        again = record(store, an_observation(links[0], job=jobs[0]))
        assert again.kind is RecordKind.DUPLICATE
        assert again.chain == store.get_chain(RUN_ID, "docs.example.com")

    def test_throttled_answers_in_a_row_are_counted_and_any_other_ends_the_row(self, store: Store) -> None:
        links, jobs = self.host_of_three(store)
        streaks = []
        for link, job, status in zip(links, jobs, [429, 429, 503], strict=True):
            chain = record(store, an_observation(link, status, job=job)).chain
            assert chain is not None
            streaks.append(chain.streak)
        assert streaks == [1, 2, 0]

    def test_an_observation_for_a_job_that_ended_otherwise_changes_nothing(self, store: Store) -> None:
        links, jobs = self.host_of_three(store)
        store.end_job(jobs[0], status=JobStatus.EXPIRED, reason=Reason.HOST_THROTTLED)
        before = contents(store)
        assert record(store, an_observation(links[0], 404, job=jobs[0])).kind is RecordKind.JOB_ENDED
        assert contents(store) == before

    def test_a_hand_check_is_in_no_runs_counts(self, store: Store) -> None:
        links, jobs = self.host_of_three(store)
        result = record(store, an_observation(links[0], 404, sequence=40))
        assert result.chain is None
        assert store.get_chain(RUN_ID, "docs.example.com") == a_chain(jobs)


class TestReadingHistory:
    def test_observations_come_in_link_and_sequence_order_filtered_as_asked(self, store: Store) -> None:
        links = [a_link(name, f"https://{name}.example.com/") for name in ("b", "a")]
        registered(store, *links)
        for link in links:
            for sequence in (11, 2, 7):
                record(store, an_observation(link, sequence=sequence))
        (job_a, job_b) = dispatched(store, links[::-1])
        record(store, an_observation(links[1], job=job_a))
        record(store, an_observation(links[0], job=job_b))

        def keys(**filters: Any) -> list[tuple[str, int]]:
            return [(o.link_id, o.sequence) for o in store.observations(**filters)]

        assert keys() == [("a", 2), ("a", 7), ("a", 11), ("a", 12), ("b", 2), ("b", 7), ("b", 11), ("b", 12)]
        assert keys(link_id="b") == [("b", 2), ("b", 7), ("b", 11), ("b", 12)]
        assert keys(run_id=RUN_ID) == [("a", 12), ("b", 12)]
        assert keys(link_id="b", run_id=RUN_ID) == [("b", 12)]
        assert keys(link_id="nobody") == keys(run_id="no run") == []
        # the builder observes sequence n at minute n + 1: since is included, until is not
        assert keys(since=after(minutes=8)) == [("a", 7), ("a", 11), ("a", 12), ("b", 7), ("b", 11), ("b", 12)]
        assert keys(until=after(minutes=8)) == [("a", 2), ("b", 2)]
        assert keys(link_id="a", since=after(minutes=3), until=after(minutes=12)) == [("a", 2), ("a", 7)]

    def test_a_stream_longer_than_any_page_comes_whole_and_in_order(self, store: Store, many: int) -> None:
        link = registered(store, a_link())
        for sequence in range(many):
            record(store, an_observation(link, 500, sequence=sequence, page_hints=()))
        assert [o.sequence for o in store.observations()] == list(range(many))

    def test_transitions_come_in_link_and_version_order(self, store: Store) -> None:
        links = [a_link(name, f"https://{name}.example.com/") for name in ("b", "a")]
        registered(store, *links)
        for sequence in range(12):
            for link in links:
                record(store, an_observation(link, 404 if sequence % 2 == 0 else 200, sequence=sequence))
        assert [t.id for t in store.transitions()] == [f"{n}:{v}" for n in "ab" for v in range(1, 13)]
        assert [t.version for t in store.transitions(link_id="b")] == list(range(1, 13))


class TestExportAndPrune:
    def test_a_later_export_replaces_the_earlier_one(self, store: Store) -> None:
        first = ExportedWeek(week=MONDAY, rows=10, sha256="a" * 64, exported_at=after(days=7))
        earlier = ExportedWeek(week=after(days=-7), rows=3, sha256="b" * 64, exported_at=after(days=8))
        again = replace(first, rows=11, sha256="c" * 64)
        for exported in (first, earlier, again):
            store.mark_exported(exported)
        assert list(store.exported_weeks()) == [earlier, again]

    @pytest.fixture
    def three_weeks(self, store: Store) -> Store:
        """Of one link: the last moment before MONDAY's week, its first and last moment, and the first one after it."""
        link = registered(store, a_link())
        moments = [
            MONDAY - timedelta(microseconds=1),
            MONDAY,
            after(days=7, microseconds=-1),
            after(days=7),
        ]
        for sequence, moment in enumerate(moments):
            status = 404 if sequence % 2 else 200
            record(store, an_observation(link, status, sequence=sequence, observed_at=moment))
        return store

    def test_exactly_that_weeks_observations_are_deleted(self, three_weeks: Store) -> None:
        before = contents(three_weeks)
        assert three_weeks.prune_observations(week=MONDAY, expect_rows=2) == 2
        links, observations, *rest = contents(three_weeks)
        assert [o.sequence for o in observations] == [0, 3]
        assert [links, *rest] == [before[0], *before[2:]]

    @pytest.mark.parametrize("expected", [0, 1, 3])
    def test_a_number_that_does_not_match_deletes_nothing(self, three_weeks: Store, expected: int) -> None:
        with pytest.raises(StaleWrite):
            three_weeks.prune_observations(week=MONDAY, expect_rows=expected)
        assert len(list(three_weeks.observations())) == 4

    def test_a_week_without_observations_is_pruned_of_nothing(self, store: Store) -> None:
        assert store.prune_observations(week=MONDAY, expect_rows=0) == 0
