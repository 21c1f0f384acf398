"""A change of a service goes through the outbox of links, once, to the team of its user; no weekly run sees it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from linkwatch_pipeline.adapters.status_store.database_url import parse_database_url
from linkwatch_pipeline.adapters.status_store.postgres import PostgresStatusStore
from linkwatch_pipeline.bootstrap import App, build_app
from linkwatch_pipeline.domain.errors import DamagedRecord
from linkwatch_pipeline.domain.links import Owner
from linkwatch_pipeline.domain.service_changes import ServiceChange
from linkwatch_pipeline.domain.service_status import Status, StatusRecord
from linkwatch_pipeline.use_cases.observe_week import begin_week
from linkwatch_pipeline.use_cases.register import register_link, retire_link
from linkwatch_pipeline.use_cases.tell_services import service_link_id, tell_services
from linkwatch_pipeline_tests.contracts.spoiling import spoil_row
from linkwatch_pipeline_tests.services.team import USER, Team
from linkwatch_pipeline_tests.virtual_clock import VirtualClock

START = datetime(2026, 11, 29, 9, 0, tzinfo=UTC)


class Stage:
    """A team's database, a home, and checks one a minute."""

    def __init__(self, team: Team, app: App, *, confirm: int = 1) -> None:
        self.team = team
        self.app = app
        self.changes = team.store(confirm=confirm)
        self._minute = 0

    def seen(self, service_id: str, statuses: str) -> None:
        """`u` is a check that saw it up, `d` down, `r` refused."""
        for letter in statuses:
            self._minute += 1
            record = StatusRecord(
                id=uuid4(),
                service_id=service_id,
                user_id=USER,
                status=Status.UP if letter == "u" else Status.DOWN,
                response_time=1.0,
                checked_at=START + timedelta(minutes=self._minute),
                refused=letter == "r",
            )
            self.changes.add([record])

    def tell(self) -> int:
        return tell_services(self.changes, self.app.store, now=self.app.clock.now())

    def mails(self) -> list[str]:
        """The subjects of all mails, after a delivery, in the order of their changes."""
        self.app.deliver()
        texts = [file.read_text() for file in sorted(self.app.home.mail.glob("*.eml"))]
        return [line for text in texts for line in text.splitlines() if line.startswith("Subject:")]


@pytest.fixture
def stage(team: Team, tmp_path: Path) -> Iterator[Stage]:
    with build_app(tmp_path / "home", env={}, clock=VirtualClock(START + timedelta(hours=1))) as app:
        app.store.put_owner(Owner(team=f"user-{USER}", address="ops@example.com"))
        made = Stage(team, app)
        yield made
        made.changes.close()


def test_each_change_is_one_mail_to_the_users_team(stage: Stage) -> None:
    service = stage.team.add_service("https://api.example.com/health")
    stage.seen(service, "uudddu")
    assert stage.tell() == 2
    assert stage.tell() == 0
    assert stage.mails() == [
        f"Subject: [linkwatch] Down: service-{service}",
        f"Subject: [linkwatch] Up again: service-{service}",
    ]
    text = next(stage.app.home.mail.glob("*.eml")).read_text()
    assert "To: ops@example.com" in text
    assert "asked this service" in text
    assert "handbook" not in text
    assert "once a week" not in text


def test_confirmation_and_refusals_keep_changes_from_being_told(stage: Stage) -> None:
    service, internal = stage.team.add_service("https://a.example.com/"), stage.team.add_service("http://10.0.0.1/")
    stage.changes.close()
    stage.changes = stage.team.store(confirm=3)
    stage.seen(service, "uddudd")
    stage.seen(internal, "urrrr")
    assert stage.tell() == 0
    stage.seen(service, "d")
    assert stage.tell() == 1


class _Crash(Exception):
    """The process is gone."""


class _DyingChanges(PostgresStatusStore):
    """Dies when it is to remember what was told."""

    def mark_told(self, changes: Sequence[ServiceChange]) -> None:
        raise _Crash


def test_a_crash_between_the_outbox_and_the_database_tells_nobody_twice(stage: Stage) -> None:
    service = stage.team.add_service("https://a.example.com/")
    stage.seen(service, "ud")
    dying = _DyingChanges(lambda: parse_database_url(stage.team.database_url), confirm=1)
    with pytest.raises(_Crash):
        tell_services(dying, stage.app.store, now=stage.app.clock.now())
    dying.close()
    assert stage.tell() == 0
    assert len(stage.mails()) == 1


def test_a_service_that_moved_keeps_its_state_and_one_that_is_gone_tells_nothing_new(stage: Stage) -> None:
    service, gone = stage.team.add_service("https://a.example.com/"), stage.team.add_service("https://b.example.com/")
    stage.seen(service, "d")
    stage.seen(gone, "d")
    stage.team.remove_service(gone)
    assert stage.tell() == 1
    with stage.team.database() as db:
        db.run("UPDATE services SET url = 'https://moved.example.com/' WHERE id = :id", id=service)
    stage.seen(service, "u")
    assert stage.tell() == 1
    link = stage.app.store.get_link(service_link_id(service))
    assert link is not None
    assert link.url.startswith("https://moved.example.com/")
    assert link.state.value == "reachable"


def test_a_service_whose_link_was_retired_by_hand_is_told_no_more_and_keeps_no_other_from_it(stage: Stage) -> None:
    quiet, other = stage.team.add_service("https://a.example.com/"), stage.team.add_service("https://b.example.com/")
    stage.seen(quiet, "d")
    assert stage.tell() == 1
    retire_link(stage.app.store, link_id=service_link_id(quiet), now=stage.app.clock.now())
    stage.seen(quiet, "u")
    stage.seen(other, "d")
    assert stage.tell() == 1
    assert stage.tell() == 0


def test_a_service_whose_history_cannot_be_read_waits_and_keeps_no_other(stage: Stage) -> None:
    ill, other = stage.team.add_service("https://a.example.com/"), stage.team.add_service("https://b.example.com/")
    stage.seen(ill, "d")
    assert stage.tell() == 1
    database, key = stage.app.home.database, f"{service_link_id(ill)}:0"
    spoil_row(database, "observations", key, page_hints="no such thing")
    stage.seen(ill, "u")
    stage.seen(other, "d")
    with pytest.raises(DamagedRecord, match="page_hints"):
        stage.tell()
    assert [change.service_id for change in stage.changes.untold(limit=9)] == [ill]
    spoil_row(database, "observations", key, page_hints="[]")
    assert stage.tell() == 1
    assert len(stage.mails()) == 3


def test_no_weekly_run_takes_a_service_and_its_page_may_be_a_link_of_its_own(stage: Stage) -> None:
    service = stage.team.add_service("https://a.example.com/")
    stage.seen(service, "d")
    stage.tell()
    store, clock = stage.app.store, stage.app.clock
    before = clock.now() - timedelta(days=7)
    register_link(
        store, link_id="guide", url="https://a.example.com/", owner="docs", notify="docs@example.com", now=before
    )
    run = begin_week(store, START - timedelta(days=6), now=clock.now())
    assert [job.link_id for job in store.jobs(run.run_id)] == ["guide"]
