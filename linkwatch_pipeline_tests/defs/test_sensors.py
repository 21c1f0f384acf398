"""The sensors: what they ask for, and the number that they give when they ask for nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest

from linkwatch_pipeline.bootstrap import App, build_app
from linkwatch_pipeline.definitions import defs
from linkwatch_pipeline.domain.errors import ConfigurationError
from linkwatch_pipeline.domain.links import Delivery
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.use_cases.feed_record import Fed, feed_record
from linkwatch_pipeline.use_cases.observe_week import begin_week
from linkwatch_pipeline.use_cases.register import set_owner, update_link
from linkwatch_pipeline.use_cases.release import release_run
from linkwatch_pipeline_tests.defs.conftest import Watch
from linkwatch_pipeline_tests.defs.watched import WEEK, Watched, checks, metadata
from linkwatch_pipeline_tests.world import Answer, visits

Tick = Callable[..., dg.SensorResult]
YESTERDAY = WEEK - timedelta(days=1)


@pytest.fixture
def tick(instance: dg.DagsterInstance) -> Iterator[Tick]:
    """Evaluates a sensor once, as the daemon would."""
    with ExitStack() as stack:

        def evaluate(name: str, app: App, cursor: str | None = None) -> dg.SensorResult:
            context = stack.enter_context(
                dg.build_sensor_context(
                    instance=instance, cursor=cursor, resources={"app": app}, repository_def=defs.get_repository_def()
                )
            )
            data = defs.resolve_sensor_def(name).evaluate_tick(context)
            return dg.SensorResult(
                run_requests=list(data.run_requests or ()), skip_reason=data.skip_message, cursor=data.cursor
            )

        yield evaluate


@pytest.fixture
def broken_page(watch: Watch) -> Watched:
    """A week in which a page was found broken, so that there is a notice to send."""
    watched = watch({"docs.example": {"/guide": 404}}, registered_at=YESTERDAY)
    watched.drive_week()
    watched.now = WEEK + timedelta(minutes=2)
    return watched


def test_the_outbox_sensor_asks_while_a_notice_is_due_and_is_silent_afterwards(
    broken_page: Watched, tick: Tick
) -> None:
    with broken_page.open() as app:
        [request] = tick("outbox_sensor", app).run_requests or ()
        assert request.run_key is not None
        assert request.run_key.startswith("docs-guide:1:0:1:")
        sent = metadata(broken_page.run_job("deliver_notices", app), "deliveries")
        assert (sent["sent"], sent["failed"], sent["still_unsettled"]) == (1, 0, 0)
        assert [(n["transition"], n["delivery"], n["attempts"]) for n in sent["notices"]] == [
            ("docs-guide:1", "sent", 1)
        ]
        assert [mail.name for mail in app.home.mail.iterdir()] == ["docs-guide_3a1.eml"]
        assert tick("outbox_sensor", app).skip_reason == dg.SkipReason("0 of 0 unsettled notices are due")


def test_the_outbox_sensor_leaves_the_mails_of_many_machines_to_who_really_sends_them(
    tick: Tick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    shared = {"LINKWATCH_PROFILE": "aws", "LINKWATCH_TABLE": "links", "LINKWATCH_CONTACT": "links@example.com"}
    with build_app(tmp_path / "shared", env=shared) as app:  # it speaks with nobody: there is no such table
        ticked = tick("outbox_sensor", app)
        assert ticked.run_requests == []
        assert 'mail is "files", but the profile is "aws"' in str(ticked.skip_reason)
        with pytest.raises(ConfigurationError, match="LINKWATCH_MAIL"):
            app.deliver()


def test_a_delivery_that_failed_is_asked_for_again(broken_page: Watched, tick: Tick) -> None:
    """Dagster never launches a run key twice, not even that of a failed run."""
    keys = set()
    for minute in (2, 3):
        broken_page.now = WEEK + timedelta(minutes=minute)
        with broken_page.open() as app:
            [request] = tick("outbox_sensor", app).run_requests or ()
            keys.add(request.run_key)
    assert len(keys) == 2


def test_a_notice_that_waits_for_its_next_attempt_is_not_asked_for(broken_page: Watched, tick: Tick) -> None:
    with broken_page.open() as app:
        app.prepare_delivery()
        notice = app.store.claim_notice("docs-guide:1", by="test", now=app.clock.now())
        assert notice is not None
        waiting = replace(
            notice, status=NoticeStatus.PENDING, next_attempt_at=app.clock.now() + timedelta(minutes=5), attempts=1
        )
        assert app.store.save_notice(waiting, claimed_by="test")
        assert tick("outbox_sensor", app).skip_reason == dg.SkipReason("0 of 1 unsettled notices are due")


def test_a_notice_that_nobody_can_be_told_wakes_nobody_until_there_is_somebody(watch: Watch, tick: Tick) -> None:
    watched = watch({"docs.example": {"/guide": 200}})
    with watched.open() as app:
        fed = Fed(link_id="loose", url="http://docs.example/loose", sequence=0, status=404)
        feed_record(app.store, fed, default_confirm=1, now=app.clock.now())
        for _ in range(2):
            assert tick("outbox_sensor", app).skip_reason == dg.SkipReason("0 of 1 unsettled notices are due")
            assert watched.run_job("deliver_notices", app).success
        update_link(app.store, link_id="loose", owner="docs-team", now=app.clock.now())
        assert len(tick("outbox_sensor", app).run_requests or ()) == 1


def test_a_suspect_run_wakes_nobody_and_its_notices_are_shown_as_held(watch: Watch, tick: Tick) -> None:
    watched = watch({"docs.example": {"/guide": 404}}, registered_at=YESTERDAY)
    watched.env["LINKWATCH_CANARIES"] = "docs-guide"
    week = watched.run_week()
    assert (metadata(week, "outbox")["held"], metadata(week, "outbox")["pending"]) == (1, 0)
    with watched.open() as app:
        assert tick("outbox_sensor", app).skip_reason == dg.SkipReason("0 of 1 unsettled notices are due")
        shown = metadata(watched.run_job("deliver_notices", app), "deliveries")
        assert (shown["sent"], shown["held"]) == (0, 1)
        assert [n["delivery"] for n in shown["notices"]] == ["held"]
        findings = metadata(watched.run_job("watch_health", app), "run_health")["findings"]
        assert [(f["code"], f["subject"]) for f in findings] == [("run_suspect", "2026-09-28T09:00:00Z")]
        release_run(app.store, "2026-09-28T09:00:00Z", by="ops", now=app.clock.now())
        assert len(tick("outbox_sensor", app).run_requests or ()) == 1


def test_the_mail_that_told_a_notice_is_shown(watch: Watch) -> None:
    watched = watch({"docs.example": {"/guide": 404, "/setup": 404}})
    watched.drive_week()
    with watched.open() as app:
        set_owner(app.store, team="docs-team", address=None, delivery=Delivery.DIGEST)
        shown = metadata(watched.run_job("deliver_notices", app), "deliveries")["notices"]
    assert len({notice["mail"] for notice in shown}) == 1
    assert shown[0]["mail"].startswith("digest:2026-09-28T09:00:00Z:")


def test_the_retry_sensor_asks_for_the_week_of_an_open_retry_run(watch: Watch, tick: Tick) -> None:
    watched = watch({"docs.example": {"/guide": visits(Answer(429, headers={"Retry-After": "1"}), 200)}})
    with watched.open() as app:
        begin_week(app.store, WEEK, now=app.clock.now())  # the weekly run is open, and is somebody else's affair
        assert tick("retry_sensor", app).skip_reason == dg.SkipReason("0 retry runs are open")
    watched.drive_week(with_retries=False)
    watched.now = WEEK + timedelta(minutes=2)
    with watched.open() as app:
        [request] = tick("retry_sensor", app).run_requests or ()
        assert request.partition_key == "2026-09-28"
        assert request.run_key == "2026-09-28T09:00:00Z~retry-1:2026092809"
        assert request.tags["linkwatch/kind"] == "weekly"
        assert watched.run_job("weekly_check", app, partition_key=request.partition_key).success
        assert tick("retry_sensor", app).skip_reason == dg.SkipReason("0 retry runs are open")


def test_the_retry_sensor_gives_a_failed_run_another_chance_an_hour_later(watch: Watch, tick: Tick) -> None:
    watched = watch({"docs.example": {"/guide": Answer(429, headers={"Retry-After": "1"})}})
    watched.drive_week(with_retries=False)
    keys = []
    for minutes in (2, 30, 62):
        watched.now = WEEK + timedelta(minutes=minutes)
        with watched.open() as app:
            keys += [request.run_key for request in tick("retry_sensor", app).run_requests or ()]
    assert [key and key[-2:] for key in keys] == ["09", "09", "10"]


def test_the_health_sensor_asks_on_a_new_verdict_and_beats_its_heart_on_every_tick(
    broken_page: Watched, tick: Tick
) -> None:
    with broken_page.open() as app:
        first = tick("health_sensor", app)
        assert len(first.run_requests or ()) == 1
        again = tick("health_sensor", app, first.cursor)
        assert again.skip_reason == dg.SkipReason("unchanged: 0 findings")
        lines = [json.loads(line) for line in app.home.metrics_file.read_text().splitlines()]
        assert sum(line["name"] == "Heartbeat" for line in lines) == 2
    broken_page.now = WEEK + timedelta(minutes=8)  # the notice should have been sent by now
    with broken_page.open() as app:
        worse = tick("health_sensor", app, first.cursor)
        assert len(worse.run_requests or ()) == 1
        again = tick("health_sensor", app, worse.cursor)
        assert len(again.run_requests or ()) == 1  # nobody has told on-call yet
        told = broken_page.run_job("watch_health", app)
        assert metadata(told, "run_health")["alarms_told"] == 1
        assert '"code": "notice_overdue"' in (app.home.folder / "alarms.jsonl").read_text()
        assert tick("health_sensor", app, worse.cursor).skip_reason == dg.SkipReason("unchanged: 1 findings")


def test_the_health_sensor_asks_once_a_day_even_if_nothing_changed(broken_page: Watched, tick: Tick) -> None:
    with broken_page.open() as app:
        assert broken_page.run_job("deliver_notices", app).success
        first = tick("health_sensor", app)
    broken_page.now = WEEK + timedelta(days=1)
    with broken_page.open() as app:
        assert len(tick("health_sensor", app, first.cursor).run_requests or ()) == 1


def test_run_health_says_what_is_wrong_and_its_check_fails(broken_page: Watched) -> None:
    with broken_page.open() as app:
        well = broken_page.run_job("watch_health", app)
    broken_page.now = WEEK + timedelta(minutes=8)
    with broken_page.open() as app:
        ill = broken_page.run_job("watch_health", app)
    assert (checks(well), checks(ill)) == ({"nothing_is_critical": True}, {"nothing_is_critical": False})
    assert ill.success
    assert metadata(well, "run_health")["findings"] == []
    [finding] = metadata(ill, "run_health")["findings"]
    assert (finding["severity"], finding["code"], finding["subject"]) == ("critical", "notice_overdue", "docs-guide:1")


@pytest.mark.parametrize(
    ("story", "codes"),
    [(True, []), (False, ["run_missing", "links_unseen", "week_missed", "week_missed", "week_missed"])],
    ids=["story", "ordinary"],
)
def test_a_home_that_tells_a_story_is_not_ill_because_the_story_ended(
    watch: Watch, story: bool, codes: list[str]
) -> None:
    watched = watch({"docs.example": {"/guide": 200}}, story=story, registered_at=YESTERDAY)
    watched.drive_week()
    watched.now = WEEK + timedelta(days=30)
    with watched.open() as app:
        found = metadata(watched.run_job("watch_health", app), "run_health")["findings"]
    assert [finding["code"] for finding in found] == codes
