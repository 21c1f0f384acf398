"""Drills of senders that die, and of two that work at once. The processes are real and so is `kill -9`."""

from __future__ import annotations

import signal
from pathlib import Path

from linkwatch_pipeline.domain.notices import CLAIM_FOR
from linkwatch_pipeline_tests.drills import process
from linkwatch_pipeline_tests.drills.account import Account
from linkwatch_pipeline_tests.drills.desk import Desk, desk

SECONDS = 250  # for a process to end


def crash_between_claim_and_send(folder: Path, account: Account) -> None:
    """A sender is killed when it has claimed a notice, before any attempt."""
    with desk(folder) as home:
        _die(home, account, process.CLAIM, arrived=0, status="claimed")
        account.step("its claim of two minutes ends")
        _send_again(home, account, arrived=1, repetitions=0)


def crash_between_send_and_mark(folder: Path, account: Account) -> None:
    """A sender is killed when the server has accepted the mail, before that is written down."""
    with desk(folder) as home:
        _die(home, account, process.SEND, arrived=1, status="sending")
        account.step("its claim of two minutes ends; nobody can know whether the mail arrived, so it is sent again")
        _send_again(home, account, arrived=2, repetitions=1)
        account.check("sent after that", home.deliver(), 0)


def two_senders_at_once(folder: Path, account: Account) -> None:
    """Two processes deliver from one database at the same time."""
    with desk(folder) as home:
        home.break_links(20)
        account.step("20 links broke; two processes deliver at once")
        both = [process.start("deliver", home.folder, now=home.clock.now(), env=home.env) for _ in range(2)]
        account.check("how they end", [each.wait(SECONDS) for each in both], [0, 0])
        account.check("notices that arrived", len(home.arrived()), 20)
        account.check("most often one arrived", max(home.arrived().values()), 1)
        account.check("where the notices stand", home.statuses(), {"sent": 20})


def _die(home: Desk, account: Account, step: str, *, arrived: int, status: str) -> None:
    """A sender dies after a step, and nobody sends while its claim lasts."""
    home.break_links(1)
    account.step(f"a link broke; its sender is killed right after its step '{step}'")
    sender = process.start("deliver", home.folder, now=home.clock.now(), env=home.env, dies_after=step)
    account.check("how the sender ended", sender.wait(SECONDS), -signal.SIGKILL)
    account.check("mails that arrived", sum(home.arrived().values()), arrived)
    account.check("where the notice stands", home.statuses(), {status: 1})
    account.check("sent while the claim lasts", home.deliver(), 0)


def _send_again(home: Desk, account: Account, *, arrived: int, repetitions: int) -> None:
    """The next sender takes the notice over when the claim has ended."""
    home.clock.advance(CLAIM_FOR * 1.5)
    account.check("sent by the next sender", home.deliver(), 1)
    account.check("mails that arrived", sum(home.arrived().values()), arrived)
    account.check("mails that call themselves a repetition", _admitted(home), repetitions)


def _admitted(home: Desk) -> int:
    return sum(b"may have this mail already" in (mail.original_content or b"") for mail in home.mail.accepted)
