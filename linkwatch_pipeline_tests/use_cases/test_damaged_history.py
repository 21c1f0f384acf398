"""An observation or a transition that cannot be read costs itself, and is not lost on its way (decision 0045)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.errors import DamagedRecord, StoreUnusable
from linkwatch_pipeline.domain.report import WeekExport
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline.use_cases import survey_health
from linkwatch_pipeline.use_cases.damage import Damage
from linkwatch_pipeline.use_cases.export_week import PrunedWeek, export_week
from linkwatch_pipeline.use_cases.hand_check import seen_before
from linkwatch_pipeline.use_cases.inspect import inspect_run
from linkwatch_pipeline.use_cases.review_week import changes_of_week, review_week
from linkwatch_pipeline.use_cases.watch_health import watch_health
from linkwatch_pipeline_tests.builders import MONDAY, RUN_ID
from linkwatch_pipeline_tests.contracts.spoiling import spoil_row
from linkwatch_pipeline_tests.use_cases.office import Office
from linkwatch_pipeline_tests.use_cases.test_export_week import Archive

A, B = "https://docs.example.com/a", "https://docs.example.com/b"


@pytest.fixture
def office(office_on_disk: Office) -> Office:
    """A closed run in which two links broke."""
    office_on_disk.watch(a=A, bad=B)
    office_on_disk.run({"a": 404, "bad": 404})
    return office_on_disk


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    store = SqliteStore.open(tmp_path / "linkwatch.sqlite3")
    yield Archive(store, tmp_path / "warehouse")
    store.close()


def spoil(folder: Path, observation: str = "bad:0", hints: str = "no such thing") -> None:
    spoil_row(folder / "linkwatch.sqlite3", "observations", observation, page_hints=hints)


def spoil_transition(folder: Path) -> None:
    spoil_row(folder / "linkwatch.sqlite3", "transitions", "bad:1", to_state="no such state")


def look(office: Office) -> set[str]:
    return {f.subject for f in watch_health(office.store, None, clock=office.clock) if f.code == "record_damaged"}


def test_health_finds_it_in_the_newest_week(office: Office, tmp_path: Path) -> None:
    spoil(tmp_path)
    spoil_transition(tmp_path)
    assert look(office) == {"observations: bad, 0", "transitions: bad, 1"}
    spoil(tmp_path, hints="[]")
    assert look(office) == {"transitions: bad, 1"}


def test_health_reads_only_so_many_observations(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey_health, "MOST_OBSERVATIONS_READ", 1)
    spoil(tmp_path)
    assert look(office) == set()


def test_what_shows_a_week_shows_the_rest(office: Office, tmp_path: Path) -> None:
    spoil(tmp_path)
    spoil_transition(tmp_path)
    damage = Damage()
    view = inspect_run(office.store, run_id=RUN_ID, now=office.clock.now(), damaged=damage)
    review = review_week(office.store, MONDAY)
    assert review is not None
    assert [seen.link_id for _, seen in view.transcript] == [seen.link_id for seen in review.troubled] == ["a"]
    assert [error.record for error in damage.records] == ["observations: bad, 0"]
    assert [change.link_id for change, _ in changes_of_week(office.store, MONDAY)] == ["a"]


def test_only_who_asks_for_its_own_sequence_by_hand_is_refused(office: Office, tmp_path: Path) -> None:
    spoil(tmp_path)
    assert seen_before(office.store, link_id="bad", sequence=1) is None
    with pytest.raises(DamagedRecord, match="bad, 0 of observations is damaged"):
        seen_before(office.store, link_id="bad", sequence=0)


# the way to the warehouse


def export(archive: Archive) -> tuple[WeekExport, list[str]]:
    """As for a report: the week's file, and what was left out."""
    damage = Damage()
    exported = export_week(archive.store, archive.warehouse, MONDAY, clock=archive.clock, damaged=damage)
    return exported, [error.record for error in damage.records]


def wrote(rows: int, *, written: bool = True) -> WeekExport:
    return WeekExport(week=MONDAY, rows=rows, written=written)


def test_a_week_is_written_without_it_and_again_until_it_is_mended(archive: Archive, tmp_path: Path) -> None:
    archive.observe("a", 0, MONDAY)
    archive.observe("bad", 0, MONDAY)
    spoil(tmp_path)
    with pytest.raises(DamagedRecord):
        archive.export()
    for _ in range(2):
        assert export(archive) == (wrote(1), ["observations: bad, 0"])
        assert list(archive.store.exported_weeks()) == []  # the week is not in the warehouse, and health may say so
    spoil(tmp_path, hints="[]")
    assert export(archive) == (wrote(2), [])
    assert archive.exported() == archive.stored()
    assert export(archive) == (wrote(2, written=False), [])


def test_what_the_file_has_already_stays_and_what_is_new_joins_it(archive: Archive, tmp_path: Path) -> None:
    kept = [archive.observe("a", 0, MONDAY), archive.observe("bad", 0, MONDAY)]
    archive.export()
    spoil(tmp_path)
    assert export(archive) == (wrote(2, written=False), ["observations: bad, 0"])
    kept.append(archive.observe("c", 0, MONDAY))  # as many can be read now as the file has
    assert export(archive) == (wrote(3), ["observations: bad, 0"])
    assert archive.exported() == kept


def test_a_file_that_is_lost_too_is_not_written_anew_without_it(archive: Archive, tmp_path: Path) -> None:
    archive.observe("a", 0, MONDAY)
    archive.observe("bad", 0, MONDAY)
    archive.export()
    spoil(tmp_path)
    archive.warehouse.path_of(MONDAY).unlink()
    with pytest.raises(StoreUnusable, match=r"only 1 are left .* the row bad, 0 of observations is damaged"):
        export(archive)


def test_its_week_stays_in_the_store_and_the_others_leave(archive: Archive, tmp_path: Path) -> None:
    archive.observe("bad", 0, MONDAY)
    archive.observe("a", 0, MONDAY + timedelta(hours=1))
    archive.observe("a", 1, MONDAY - WEEK)
    spoil(tmp_path)
    report = archive.prune()
    assert report.weeks == (PrunedWeek(week=MONDAY - WEEK, rows=1),)
    [(week, why)] = report.kept
    assert (week, "the row bad, 0 of observations is damaged" in why) == (MONDAY, True)
    spoil(tmp_path, hints="[]")
    assert len(archive.stored()) == 2
    assert archive.prune().weeks == (PrunedWeek(week=MONDAY, rows=2),)
