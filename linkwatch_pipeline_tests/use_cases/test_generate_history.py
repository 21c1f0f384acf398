"""Made-up histories: the fast way and the real state machine agree, and the same seed gives the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from linkwatch_pipeline.domain.errors import ConflictingContent, InvalidInput
from linkwatch_pipeline.domain.links import Link
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.use_cases.generate_history import MOST_LINKS, check_size
from linkwatch_pipeline.use_cases.report import report_week
from linkwatch_pipeline_tests.histories import made_home

LINKS, WEEKS = 300, 4


def state_of(link: Link) -> Link:
    """What the history says of a link: not which run holds its next sequence."""
    return replace(link, allocations={})


def test_the_fast_way_makes_what_the_store_makes_look_by_look(tmp_path: Path) -> None:
    confirm = 2  # every part of the state counts then
    slow, recorded = made_home(tmp_path / "slow", links=LINKS, weeks=WEEKS, seed=192, confirm=confirm)
    fast, played = made_home(tmp_path / "fast", links=LINKS, weeks=WEEKS, seed=192, confirm=confirm, in_store=False)
    with slow, fast:
        assert (recorded.observations, recorded.transitions) == (played.observations, played.transitions)
        assert recorded.transitions > 5
        for week in recorded.weeks:
            seen = list(slow.warehouse.read_week(week))
            assert seen == list(fast.warehouse.read_week(week))
            assert list(slow.warehouse.read_transitions(week)) == list(fast.warehouse.read_transitions(week))
            assert list(slow.warehouse.read_notices(week)) == list(fast.warehouse.read_notices(week))
        assert [state_of(link) for link in slow.store.links()] == [state_of(link) for link in fast.store.links()]
        slow_runs, fast_runs = list(slow.store.runs()), list(fast.store.runs())
        assert [(run.run_id, run.closed_at, run.totals, run.retry_of) for run in slow_runs] == [
            (run.run_id, run.closed_at, run.totals, run.retry_of) for run in fast_runs
        ]
        assert len(slow_runs) > WEEKS  # some pages asked for a pause
        reports = [report_week(a.store, a.warehouse, a.reports, played.weeks[-1], clock=a.clock) for a in (slow, fast)]
        links = [{link_id: state_of(link) for link_id, link in report.links.items()} for report in reports]
        assert links[0] == links[1]
        assert replace(reports[0], links={}) == replace(reports[1], links={})


def test_the_same_seed_makes_the_same_history_and_another_another(tmp_path: Path) -> None:
    homes = [
        made_home(tmp_path / str(n), links=50, weeks=2, seed=seed, in_store=False)[0]
        for n, seed in enumerate((3, 3, 4))
    ]
    weeks = [[list(app.warehouse.read_week(week)) for week in app.reports.weeks()] for app in homes]
    for app in homes:
        app.close()
    assert weeks[0] == weeks[1]
    assert weeks[0] != weeks[2]


def test_a_large_history_has_something_of_everything(tmp_path: Path) -> None:
    app, made = made_home(tmp_path, links=3_000, weeks=5, seed=13, in_store=False)
    with app:
        report = report_week(app.store, app.warehouse, app.reports, made.weeks[-1], clock=app.clock)
    assert report.this_week.links is not None
    assert set(report.this_week.links) >= set(Outcome) - {Outcome.THROTTLED}
    assert 0.9 < (report.this_week.share(Outcome.REACHABLE) or 0) < 0.99
    lists = (
        report.by_owner, report.by_host, report.by_file, report.worst_hosts, report.newly_broken, report.recovered,
        report.still_broken, report.repeated_uncertainty, report.content_changed, report.moved_for_good,
        report.suspected_pages, report.ending_certificates, report.slowest_hosts, report.availability,
    )  # fmt: skip
    assert all(found.rows for found in lists)


def test_a_home_with_links_is_left_alone(tmp_path: Path) -> None:
    made_home(tmp_path, links=5, weeks=1)[0].close()
    with pytest.raises(ConflictingContent, match="has links already"):
        made_home(tmp_path, links=5, weeks=1)


def test_a_seed_below_nought_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="seed: -1 is below 0"):
        check_size(5, 1, -1)


@pytest.mark.parametrize(("links", "weeks", "field"), [(0, 1, "links"), (MOST_LINKS + 1, 1, "links"), (5, 0, "weeks")])
def test_a_size_that_cannot_be_made_is_refused_by_name(links: int, weeks: int, field: str) -> None:
    with pytest.raises(InvalidInput, match=field):
        check_size(links, weeks)
