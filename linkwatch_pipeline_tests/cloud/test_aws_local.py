"""`make aws-local`, small in the suite and with the whole handbook as a campaign."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from linkwatch_pipeline.domain.runs import RunCounts, RunState
from linkwatch_pipeline.entrypoints.cli import main
from linkwatch_pipeline_tests.builders import MONDAY, a_run
from linkwatch_pipeline_tests.campaigns.handbook_weeks import HANDBOOK
from linkwatch_pipeline_tests.cloud import aws_local
from linkwatch_pipeline_tests.cloud.aws_account import ALARMS, Account, wrongs
from linkwatch_pipeline_tests.cloud.aws_play import ROOT, Play, cloud_with_roles
from linkwatch_pipeline_tests.cloud.handbook_links import links_of, place_of, some_links

PAGE = ROOT / "docs" / "aws.md"
TYPED = re.compile(r"^\$ linkwatch (.+)$", re.MULTILINE)


def play(
    folder: Path,
    links: list[str],
    handbook: Path | None = None,
    then: Callable[[Mapping[str, str]], None] = lambda _: None,
) -> Account:
    (folder / "cloud").mkdir()
    with cloud_with_roles(folder / "cloud") as cloud:

        def say(words: str) -> None:
            print(words)
            if words.startswith("ticking"):  # as if a minute began now: this one keeps dispatch busy
                tick = b'{"action": "tick"}'
                cloud.client("lambda").invoke(FunctionName="lw-dispatch", InvocationType="Event", Payload=tick)

        week = Play(cloud, folder, links, handbook, hurried=handbook is None, say=say)
        return week.run(lambda _: then(week.env))


def type_the_page(env: Mapping[str, str]) -> None:
    """The commands of the page, as a person types them at what was kept up."""
    commands = TYPED.findall(PAGE.read_text(encoding="utf-8"))
    assert len(commands) == 7
    with pytest.MonkeyPatch.context() as patch:
        for name, value in env.items():
            patch.setenv(name, value)
        for words in commands:
            assert main(words.split()) == 0, words


@pytest.mark.timeout(900)  # the play itself has patience for less
def test_a_week_of_some_links_is_deployed_fired_checked_told_and_accounted_for(tmp_path: Path) -> None:
    """About a second a link, most of it waiting: the emulator's mapping receives one message after the other.

    Its tick meets another one, of which it says nothing: what is refused for that is no error, and comes later.
    """
    links = some_links(60)
    account = play(tmp_path, links, then=type_the_page)
    assert account.wrong == (), account.to_text()
    assert (account.links, account.notices) == (len(links), {"sent": account.transitions})
    assert account.hosts >= 15
    assert account.transitions
    assert processes_of(tmp_path) == []


def test_whoever_interrupts_it_sees_a_sentence_and_nothing_is_left(tmp_path: Path) -> None:
    command = [sys.executable, "-u", "-m", "linkwatch_pipeline_tests.cloud.aws_local", "--links", "5"]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    play = subprocess.Popen(command, text=True, env=env, cwd=ROOT, start_new_session=True, **pipes)  # type: ignore[call-overload]
    assert play.stdout is not None
    assert play.stdout.readline().startswith("deploying both stacks")
    os.killpg(play.pid, signal.SIGINT)  # as a terminal does
    _, said = play.communicate(timeout=100)
    assert (play.returncode, said) == (130, "interrupted; the emulator and what it started have ended\n")
    assert (processes_of(tmp_path), list(tmp_path.iterdir())) == ([], [])


def test_sigterm_ends_it_as_an_interrupt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Its folder and its emulator go when it is unwound."""

    def play_and_tell(*_: object, keep: bool) -> int:
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler  # or the next line ends the tests
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("it goes on")

    former = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(aws_local, "_play_and_tell", play_and_tell)
    assert aws_local.main(["--links", "1", "--keep"]) == 130
    assert capsys.readouterr().err == "interrupted; the emulator and what it started have ended\n"
    assert signal.getsignal(signal.SIGTERM) == former


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--links", "0"], "'0' is no whole number from 1 to 10,000"),
        (["--links", "-1"], "'-1' is no whole number from 1 to 10,000"),
        (["--handbook", "absent"], "there is no 'absent'. Name a file or a folder."),
        (["--handbook", "empty"], "no link was found in empty"),
    ],
)
def test_what_leaves_nothing_to_play_is_refused_in_a_sentence(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        aws_local.main(arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_a_play_in_which_nothing_is_broken_is_notwrongs() -> None:
    run = a_run(state=RunState.CLOSED, closed_at=MONDAY, totals=RunCounts(expected=1, by_end={"reachable": 1}))
    one = {"reachable": 1}
    account = Account(
        run_id=run.run_id, state="closed", seconds=1.0, links=1, hosts=1, ends=one, rows=one, expected=one, notices={},
        told_after=(), metrics={"RunLate": 0, "CriticalFindings": 0, "Heartbeat": 1}, late_lately=False, denied=(),
        alarms=dict.fromkeys(ALARMS, "OK"), packed="the zip", transitions=0, mails=0, waiting=0,
        dead_letters=0,
    )  # fmt: skip
    assert list(wrongs(account, run, jobs_pending=False)) == []
    told = replace(account, notices={"sent": 1})
    assert list(wrongs(told, run, jobs_pending=False)) == [
        "0 links are broken, each one transition, one notice, one mail"
    ]


def processes_of(folder: Path) -> list[str]:
    """What still runs out of it: the emulator starts a process for each function."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(each.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in found if str(folder) in line]


def test_the_links_of_the_usual_play_stand_on_many_hosts() -> None:
    links = some_links(60)
    assert 55 <= len(links) <= 60
    assert len({place_of(url)[0] for url in links}) >= 15


@pytest.mark.campaign
@pytest.mark.skipif(not HANDBOOK.is_dir(), reason="the 18F handbook does not lie beside the repository")
def test_a_week_of_the_whole_handbook(tmp_path: Path) -> None:
    links = links_of(HANDBOOK)
    assert len(links) > 1600
    account = play(tmp_path, links, HANDBOOK)
    assert account.wrong == (), account.to_text()
    assert account.links == len(links)
