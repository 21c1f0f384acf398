"""Alarms leave this process: by a real webhook, as lines of a file, and out of a memory that survives restarts."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
import trustme

from linkwatch_pipeline.adapters.alarms.documents import alarm_document, read_alarm
from linkwatch_pipeline.adapters.alarms.lines_file import AlarmLines
from linkwatch_pipeline.adapters.alarms.memory_file import AlarmFile
from linkwatch_pipeline.adapters.alarms.webhook import AlarmWebhook
from linkwatch_pipeline.domain.alarms import Alarm, AlarmKind, AlarmState
from linkwatch_pipeline.domain.errors import AlarmNotTaken
from linkwatch_pipeline.domain.health_findings import Finding, Severity
from linkwatch_pipeline.ports import AlarmDestination
from linkwatch_pipeline.use_cases.tell_alarms import Told, tell_alarms
from linkwatch_pipeline_tests.builders import MONDAY, RUN_ID, after
from linkwatch_pipeline_tests.world.on_call import OnCallServer

LATE = Finding(code="run_late", severity=Severity.CRITICAL, subject=RUN_ID, detail="resume it", since=MONDAY)
ALARM = Alarm(
    id="health:1:unhealthy", kind=AlarmKind.UNHEALTHY, source="health", at=MONDAY, since=MONDAY, findings=(LATE,)
)


def hook(url: str, **how: Any) -> AlarmWebhook:
    return AlarmWebhook(url, user_agent="linkwatch/test", **how)


def test_a_webhook_gets_the_alarm_as_json_with_a_sentence_for_chats() -> None:
    with OnCallServer().running() as server:
        hook(server.url).tell(ALARM)
    [told] = server.told
    assert told == alarm_document(ALARM)
    assert told["text"] == (
        "linkwatch health: not healthy since 2026-09-28T09:00:00Z.\n- run_late (2026-09-28T09:00:00Z): resume it"
    )
    assert read_alarm(told) == ALARM


@pytest.mark.parametrize("status", [199 + 3, 302, 400, 404, 500, 503])
def test_only_2xx_takes_an_alarm_and_redirects_are_not_followed(status: int) -> None:
    with OnCallServer(script=[status]).running() as server:
        if status == 202:
            hook(server.url).tell(ALARM)
        else:
            with pytest.raises(AlarmNotTaken, match=f"127.0.0.1 answered {status}"):
                hook(server.url).tell(ALARM)
    assert server.calls == 1


def test_a_webhook_whose_answer_drips_is_given_up_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    with OnCallServer(drips=True).running() as server:

        class Loop(asyncio.SelectorEventLoop):
            """An hour has passed as soon as the server has begun to answer, however slow this machine is."""

            def time(self) -> float:
                return super().time() + (3600 if server.calls else 0)

        def run(main: Coroutine[Any, Any, int]) -> int:
            with asyncio.Runner(loop_factory=Loop) as runner:
                return runner.run(main)

        monkeypatch.setattr(asyncio, "run", run)
        with pytest.raises(AlarmNotTaken, match=r"127\.0\.0\.1 cannot be reached: TimeoutError"):
            hook(server.url, total_seconds=100).tell(ALARM)
        assert server.calls == 1
    for thread in threading.enumerate():
        if thread.name == "ops-webhook":
            thread.join(60)
            assert not thread.is_alive()


def test_what_is_said_of_a_webhook_never_holds_its_path() -> None:
    with OnCallServer().running() as server:
        url = server.url + "T0P-S3CRET"
    with pytest.raises(AlarmNotTaken) as failed:
        hook(url).tell(ALARM)
    assert "S3CRET" not in str(failed.value)
    assert failed.value.__cause__ is None


def test_a_webhook_over_tls_has_to_show_a_certificate_that_is_trusted() -> None:
    authority = trustme.CA()
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    with OnCallServer(authority=authority).running() as server:
        with pytest.raises(AlarmNotTaken, match="ConnectError"):
            hook(server.url).tell(ALARM)
        hook(server.url, ssl_context=trust).tell(ALARM)
    assert len(server.told) == 1


def test_the_file_gets_a_line_for_each_alarm(tmp_path: Path) -> None:
    lines = AlarmLines(tmp_path / "alarms.jsonl")
    lines.tell(ALARM)
    lines.tell(ALARM)
    assert [json.loads(line) for line in (tmp_path / "alarms.jsonl").read_text().splitlines()] == [
        alarm_document(ALARM)
    ] * 2
    with pytest.raises(AlarmNotTaken, match=r"ops_file .* cannot be written"):
        AlarmLines(tmp_path / "no" / "alarms.jsonl").tell(ALARM)


def test_what_was_told_is_read_back_whole(tmp_path: Path) -> None:
    memory = AlarmFile(tmp_path / "state.json")
    assert memory.read() == AlarmState()
    state = AlarmState(
        looked_at=after(minutes=5),
        since=MONDAY,
        told_at=MONDAY,
        told=frozenset({"run_late"}),
        waiting={"hook": (ALARM,)},
    )
    memory.save(state)
    assert AlarmFile(tmp_path / "state.json").read() == state


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"looked_at": 5}', "\x00", "[" * 20_000])
def test_a_damaged_memory_is_as_if_nothing_had_been_told(tmp_path: Path, damage: str) -> None:
    (tmp_path / "state.json").write_text(damage)
    memory = AlarmFile(tmp_path / "state.json")
    assert memory.read() == AlarmState()
    memory.save(AlarmState(looked_at=MONDAY))
    assert memory.read().looked_at == MONDAY


def test_one_at_a_time_tells_and_the_other_does_not_wait(tmp_path: Path) -> None:
    first, second = AlarmFile(tmp_path / "state.json"), AlarmFile(tmp_path / "state.json")
    with first.alone() as mine, second.alone() as theirs:
        assert mine == AlarmState()
        assert theirs is None
        assert tell_alarms(second, {}, [LATE], source="health", now=MONDAY) == Told()
    with second.alone() as free:
        assert free == AlarmState()


def test_an_alarm_that_the_webhook_did_not_take_is_offered_at_the_next_look_after_a_restart(tmp_path: Path) -> None:
    with OnCallServer(script=[503]).running() as server:
        destinations: dict[str, AlarmDestination] = {
            "ops_file": AlarmLines(tmp_path / "alarms.jsonl"),
            "ops_webhook": hook(server.url),
        }

        def look(*findings: Finding, minutes: int) -> Told:
            memory = AlarmFile(tmp_path / "state.json")  # as a new process has it
            return tell_alarms(memory, destinations, findings, source="health", now=after(minutes=minutes))

        told = look(LATE, minutes=30)
        assert (told.taken, told.problems) == (
            1,
            ("ops_webhook at 127.0.0.1 answered 503; it takes an alarm with 2xx.",),
        )
        assert look(LATE, minutes=35) == Told(taken=1)
        assert look(LATE, minutes=40) == Told()
        assert look(minutes=45) == Told(taken=2)
    assert [alarm["kind"] for alarm in server.told] == ["unhealthy", "recovered"]
    written = [json.loads(line) for line in (tmp_path / "alarms.jsonl").read_text().splitlines()]
    assert [alarm["id"] for alarm in written] == [alarm["id"] for alarm in server.told]


class FullDisk(AlarmFile):
    """Nothing can be saved."""

    def save(self, state: AlarmState) -> None:
        raise OSError(28, "No space left on device")


def test_a_full_disk_does_not_silence_the_alarm(tmp_path: Path) -> None:
    with OnCallServer().running() as server:
        memory = FullDisk(tmp_path / "state.json")
        assert tell_alarms(memory, {"ops_webhook": hook(server.url)}, [LATE], source="health", now=MONDAY).taken == 1
    assert len(server.told) == 1
