"""The weeks as DuckDB sees them: every section agrees with what plain Python counts, and says so when it cannot."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkwatch_pipeline.adapters.reports.duckdb_reports import DuckDBReports
from linkwatch_pipeline.adapters.reports.outcome_plot import draw_outcomes
from linkwatch_pipeline.adapters.warehouse.parquet import ParquetWarehouse
from linkwatch_pipeline.domain.coverage import ChangedContent, HostTrouble, Ranked, RepeatedUncertainty, WeekCount
from linkwatch_pipeline.domain.errors import MissingExtra, StoreUnusable
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import retry_run_id, weekly_run_id
from linkwatch_pipeline.domain.timestamps import WEEK, week_start
from linkwatch_pipeline.domain.urls import canonical_url, host_key
from linkwatch_pipeline.ports import Reports
from linkwatch_pipeline_tests.builders import MONDAY, a_job, a_link, an_observation

R, B, T, U, C = Outcome
STATUS = {R: 200, B: 404, T: 429, U: None, C: 200}
LAST_WEEK = MONDAY - WEEK


@dataclass
class Looks:
    """Observations by hand and of runs, written week by week as the export does."""

    folder: Path

    def __post_init__(self) -> None:
        self.all: list[Observation] = []

    def look(
        self, link_id: str, outcome: Outcome, week: datetime = MONDAY, *, url: str | None = None, again: int = 0
    ) -> Observation:
        """The weekly run's look at a link, or the n-th retry run's."""
        run_id = weekly_run_id(week)
        retried = None
        for _ in range(again):
            retried, run_id = run_id, retry_run_id(run_id) or ""
        link = a_link(link_id, url or f"https://{link_id}.example/page")
        weeks = (week - MONDAY) // WEEK + 500
        job = a_job(
            link, run_id=run_id, sequence=weeks * 10 + again, retry_of=f"{retried}:{link_id}" if retried else None
        )
        at = week + timedelta(minutes=1 + 40 * again)
        seen = an_observation(link, STATUS[outcome], job=job, marker_found=outcome is not C, observed_at=at)
        assert seen.outcome is outcome
        self.all.append(seen)
        return seen

    def hand_check(self, link_id: str, outcome: Outcome, week: datetime = MONDAY) -> None:
        link = a_link(link_id, f"https://{link_id}.example/page")
        self.all.append(an_observation(link, STATUS[outcome], sequence=9_999, observed_at=week + timedelta(days=1)))

    def reports(self) -> Reports:
        warehouse = ParquetWarehouse(self.folder)
        by_week = defaultdict(list)
        for seen in self.all:
            by_week[week_start(seen.observed_at)].append(seen)
        for week, observations in by_week.items():
            warehouse.write_week(week, observations)
        return DuckDBReports(warehouse.views)

    def path_of(self, week: datetime) -> Path:
        return ParquetWarehouse(self.folder).path_of(week)


@pytest.fixture
def looks(tmp_path: Path) -> Looks:
    return Looks(tmp_path)


def test_outcomes_are_counted_for_each_week_up_to_the_one_asked_for(looks: Looks) -> None:
    for link_id, outcomes in {"a": (R, B), "b": (R, R), "c": (U, C)}.items():
        looks.look(link_id, outcomes[0], LAST_WEEK)
        looks.look(link_id, outcomes[1])
    looks.look("a", T, MONDAY + WEEK)
    reports = looks.reports()
    counted = reports.outcomes_by_week(through=MONDAY)
    assert counted == {LAST_WEEK: {R: 2, U: 1}, MONDAY: {B: 1, R: 1, C: 1}}
    assert list(counted) == [LAST_WEEK, MONDAY]
    assert reports.outcomes_by_week(through=LAST_WEEK) == {LAST_WEEK: {R: 2, U: 1}}
    assert reports.weeks() == [LAST_WEEK, MONDAY, MONDAY + WEEK]


def test_a_link_counts_once_a_week_by_its_last_look(looks: Looks) -> None:
    looks.look("back", T)
    looks.look("back", R, again=1)
    looks.look("still-waiting", T)
    looks.look("still-waiting", T, again=1)
    looks.look("still-waiting", T, again=2)
    looks.look("expired-at-first", U, again=1)  # its job of the weekly run ended without a look
    looks.look("back", T, LAST_WEEK)  # and nobody looked again
    reports = looks.reports()
    assert reports.outcomes_by_week(through=MONDAY) == {LAST_WEEK: {T: 1}, MONDAY: {R: 1, T: 1, U: 1}}
    hosts = {row.host: (row.links, row.throttled) for row in reports.worst_hosts(MONDAY, most=9).rows}
    assert hosts == {"still-waiting.example": (1, 1), "expired-at-first.example": (1, 0)}
    assert [row.throttled for row in reports.worst_hosts(LAST_WEEK, most=9).rows] == [1]


def test_checks_by_hand_count_nowhere(looks: Looks) -> None:
    looks.look("a", R)
    for outcome in (B, U, C):
        looks.hand_check(f"hand-{outcome}", outcome)
        looks.hand_check(f"hand-{outcome}", outcome, LAST_WEEK)
    looks.hand_check("a", U)
    reports = looks.reports()
    assert reports.outcomes_by_week(through=MONDAY) == {MONDAY: {R: 1}}
    assert reports.worst_hosts(MONDAY, most=9).total == 0
    assert reports.repeated_uncertainty(MONDAY, at_least=1, most=9).total == 0
    assert reports.content_changed(MONDAY, most=9).total == 0


def test_a_run_that_went_on_into_the_next_week_counts_in_its_own(looks: Looks) -> None:
    late = looks.look("a", U)
    looks.all[-1] = replace(late, observed_at=MONDAY + WEEK + timedelta(minutes=5))
    looks.look("a", R, MONDAY + WEEK)
    reports = looks.reports()
    assert reports.weeks() == [MONDAY + WEEK]
    assert reports.outcomes_by_week(through=MONDAY) == {MONDAY: {U: 1}}
    assert reports.outcomes_by_week(through=MONDAY + WEEK) == {MONDAY: {U: 1}, MONDAY + WEEK: {R: 1}}
    assert reports.worst_hosts(MONDAY, most=9).rows[0].uncertain == 1


RETRIES = st.lists(st.sampled_from(Outcome), max_size=3)


@given(st.lists(st.tuples(st.lists(st.none() | st.sampled_from(Outcome), min_size=3, max_size=3), RETRIES), max_size=6))
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_counts_agree_with_the_last_look_of_each_link_counted_one_by_one(
    tmp_path: Path, histories: Sequence[tuple[Sequence[Outcome | None], Sequence[Outcome]]]
) -> None:
    looks = Looks(tmp_path)
    for number, (weeks, retries) in enumerate(histories):
        for index, outcome in enumerate(weeks):
            week = MONDAY - index * WEEK
            if outcome is not None:
                looks.look(f"link-{number}", outcome, week)
            # As runs do: a throttled look, and a job that ended without one, are looked at again.
            for again, next_outcome in enumerate(retries, start=1):
                if outcome not in (None, T):
                    break
                outcome = looks.look(f"link-{number}", next_outcome, week, again=again).outcome
    for stale in tmp_path.glob("observations/*"):
        stale.unlink()
    assert looks.reports().outcomes_by_week(through=MONDAY) == counted_one_by_one(looks.all)


def counted_one_by_one(looks: Iterable[Observation]) -> dict[datetime, Counter[Outcome]]:
    last: dict[tuple[datetime, str], Observation] = {}
    for seen in looks:
        place = (week_start(seen.observed_at), seen.link_id)
        if place not in last or seen.sequence > last[place].sequence:
            last[place] = seen
    counted: dict[datetime, Counter[Outcome]] = defaultdict(Counter)
    for (week, _), seen in last.items():
        counted[week][seen.outcome] += 1
    return counted


def test_the_worst_hosts_come_first_with_their_reasons(looks: Looks) -> None:
    outcomes = {"big.example": (B, U, U, R), "small.example": (T, R, C), "fine.example": (R, C)}
    for host, ended in outcomes.items():
        for number, outcome in enumerate(ended):
            looks.look(f"{host}-{number}", outcome, url=f"https://{host}/{number}")
    looks.look("old", B, LAST_WEEK)
    reports = looks.reports()
    big = HostTrouble(
        host="big.example", links=4, broken=1, uncertain=2, throttled=0, reasons={Reason.TIMEOUT: 2, Reason.GONE: 1}
    )
    small = HostTrouble(
        host="small.example", links=3, broken=0, uncertain=0, throttled=1, reasons={Reason.RATE_LIMITED: 1}
    )
    assert reports.worst_hosts(MONDAY, most=9) == Ranked(rows=(big, small), total=2)
    assert list(reports.worst_hosts(MONDAY, most=9).rows[0].reasons) == [Reason.TIMEOUT, Reason.GONE]
    assert reports.worst_hosts(MONDAY, most=1) == Ranked(rows=(big,), total=2)


def test_a_host_is_named_as_politeness_names_it(looks: Looks) -> None:
    urls = (
        "http://docs.example.com:8080/a:b@c/d",
        "https://api.example.com?q=/x",
        "https://WWW.example.com/a?b=c//d",
        "http://[2001:db8::1]:8000/",
        "http://[2001:db8::2]/x",
        "https://bücher.example/",
        "http://192.0.2.1/x",
    )
    for number, url in enumerate(urls):
        looks.look(f"link-{number}", B, url=url)
    named = {row.host.strip("[]") for row in looks.reports().worst_hosts(MONDAY, most=9).rows}
    assert named == {host_key(canonical_url(url)).strip("[]") for url in urls}


def test_uncertainty_is_repeated_until_a_verdict_ends_it(looks: Looks) -> None:
    histories: list[
        tuple[list[Outcome | None], int | None]
    ] = [  # the newest week first (None: no look); weeks in a row
        ([U, U, U, R], 3),
        ([U, U, B, U, U], 2),
        ([U, U, C, U], 2),
        ([U, U], 2),
        ([U, T, U], 2),
        ([U, None, U, None, None, U, R], 3),
        ([U, R, U, U], None),
        ([R, U, U], None),
        ([T, U, U], None),
        ([None, U, U], None),
        ([U, R], None),
    ]
    for number, (history, _) in enumerate(histories):
        for weeks_ago, outcome in enumerate(history):
            if outcome is not None:
                looks.look(f"link-{number:02}", outcome, MONDAY - weeks_ago * WEEK)
    found = looks.reports().repeated_uncertainty(MONDAY, at_least=2, most=99)
    in_a_row = {row.link_id: row.weeks for row in found.rows}
    assert in_a_row == {f"link-{n:02}": weeks for n, (_, weeks) in enumerate(histories) if weeks is not None}
    assert found.total == len(in_a_row)


def test_repeated_uncertainty_says_since_when_and_why(looks: Looks) -> None:
    for week, reason in ((0, Reason.DNS), (1, Reason.TLS), (2, Reason.DNS)):
        looks.all.append(replace(looks.look("a", U, MONDAY - week * WEEK), reason=reason))
        del looks.all[-2]
    looks.look("b", U)
    looks.look("b", U, LAST_WEEK)
    looks.look("moved", U, url="https://new.example/")
    looks.look("moved", U, LAST_WEEK, url="https://old.example/")
    looks.look("a", U, MONDAY + WEEK)
    found = looks.reports().repeated_uncertainty(MONDAY, at_least=2, most=9)
    assert [row.link_id for row in found.rows] == ["a", "b"]
    assert found.rows[0] == RepeatedUncertainty(
        link_id="a",
        url="https://a.example/page",
        weeks=3,
        since=MONDAY - 2 * WEEK + timedelta(minutes=1),
        reason=Reason.DNS,
        reasons=(Reason.DNS, Reason.TLS),
    )
    assert looks.reports().repeated_uncertainty(MONDAY, at_least=2, most=1).total == 2


def test_a_week_that_was_throttled_first_and_uncertain_later_is_uncertain(looks: Looks) -> None:
    for week in (MONDAY, LAST_WEEK):
        looks.look("a", T, week)
        looks.look("a", U, week, again=1)
        looks.look("b", U if week is MONDAY else T, week)
    looks.look("b", R, LAST_WEEK, again=1)
    looks.look("b", U, LAST_WEEK - WEEK)
    found = looks.reports().repeated_uncertainty(MONDAY, at_least=2, most=9)
    assert [(row.link_id, row.weeks) for row in found.rows] == [("a", 2)]


def test_pages_without_the_expected_text_are_listed(looks: Looks) -> None:
    looks.look("b", C)
    seen = looks.look("a", C)
    looks.look("c", C, LAST_WEEK)
    found = looks.reports().content_changed(MONDAY, most=1)
    changed = ChangedContent(
        link_id="a", url=seen.url, observed_at=seen.observed_at, status=200, final_url=seen.final_url
    )
    assert found == Ranked(rows=(changed,), total=2)


def test_without_files_nothing_is_known(tmp_path: Path) -> None:
    reports: Reports = DuckDBReports(ParquetWarehouse(tmp_path / "nowhere").views)
    assert reports.weeks() == []
    assert reports.outcomes_by_week(through=MONDAY) == {}
    assert reports.worst_hosts(MONDAY, most=9) == Ranked()
    assert reports.repeated_uncertainty(MONDAY, at_least=2, most=9) == Ranked()
    assert reports.content_changed(MONDAY, most=9) == Ranked()


def test_other_files_in_the_folder_are_left_alone(looks: Looks) -> None:
    looks.look("a", R)
    reports = looks.reports()
    for name in (".tmp-x", "week=2026-09-21.parquet.bak", "notes.txt"):
        (looks.folder / "observations" / name).write_text("not Parquet")
    assert reports.outcomes_by_week(through=MONDAY) == {MONDAY: {R: 1}}


def test_a_home_whose_name_looks_like_a_pattern_is_read(tmp_path: Path) -> None:
    looks, other = Looks(tmp_path / "o'[ab]*"), Looks(tmp_path / "o'abc")
    looks.look("a", R)
    other.look("b", B)
    other.reports()
    assert looks.reports().outcomes_by_week(through=MONDAY) == {MONDAY: {R: 1}}


@pytest.mark.parametrize("damage", ["cut", "spoilt", "newer schema", "foreign"])
def test_a_file_that_cannot_be_read_is_named(looks: Looks, damage: str) -> None:
    for number in range(200):
        looks.look(f"link-{number}", U)
    reports = looks.reports()
    path = looks.path_of(MONDAY)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-20])
    elif damage == "spoilt":
        whole = path.read_bytes()
        path.write_bytes(whole[:4] + b"\xff" * 2000 + whole[2004:])
    else:
        version = ", KV_METADATA {linkwatch_schema: '3'}" if damage == "newer schema" else ""
        with duckdb.connect() as connection:
            connection.execute(f"COPY (SELECT 'x' AS run_id) TO '{path}' (FORMAT parquet{version})")
    with pytest.raises(StoreUnusable, match=r"week=2026-09-28\.parquet"):
        reports.worst_hosts(MONDAY, most=9)


def test_without_duckdb_the_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtra, match=r"linkwatch-pipeline\[reports\]"):
        DuckDBReports(ParquetWarehouse(tmp_path).views).outcomes_by_week(through=MONDAY)


def test_the_picture_of_many_weeks_is_a_small_png() -> None:
    weeks = [
        WeekCount(week=MONDAY - number * WEEK, links={R: 500_000 + number, B: 900, U: 40 * number, T: 7, C: 1})
        for number in range(60)
    ]
    weeks[3] = WeekCount(week=MONDAY - 3 * WEEK)
    picture = draw_outcomes(weeks)
    assert picture is not None
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 100_000 * 3 / 4  # as text in the UI it is a third longer


def test_a_week_without_data_can_be_drawn() -> None:
    assert draw_outcomes([WeekCount(week=MONDAY)])


def test_without_matplotlib_there_is_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert draw_outcomes([WeekCount(week=MONDAY)]) is None
