"""A home in virtual time with real servers around it: a mail server and on-call's webhook, both on loopback."""

from __future__ import annotations

import email
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path

import trustme

from linkwatch_pipeline.bootstrap import App, build_app
from linkwatch_pipeline.domain.links import Delivery
from linkwatch_pipeline_tests.builders import after
from linkwatch_pipeline_tests.ports import reserved_port
from linkwatch_pipeline_tests.use_cases.office import SENDER, Office
from linkwatch_pipeline_tests.virtual_clock import VirtualClock
from linkwatch_pipeline_tests.world.mail_server import MailServer
from linkwatch_pipeline_tests.world.on_call import OnCallServer

LOOK_EVERY = timedelta(minutes=5)


@dataclass
class Desk:
    """`pages` is the registry and the runs, `mail` what owners get, `on_call` what on-call gets."""

    folder: Path
    clock: VirtualClock
    mail: MailServer
    on_call: OnCallServer

    @property
    def env(self) -> dict[str, str]:
        """Settings of this home."""
        return {
            "LINKWATCH_MAIL": "smtp",
            "LINKWATCH_MAIL_FROM": SENDER,
            "LINKWATCH_SMTP_HOST": "127.0.0.1",
            "LINKWATCH_SMTP_PORT": str(self.mail.port),
            "LINKWATCH_SMTP_SECURITY": "none",
            "LINKWATCH_OPS_WEBHOOK": self.on_call.url,
        }

    @contextmanager
    def open(self) -> Iterator[App]:
        """The home as a new process has it."""
        with build_app(self.folder, env=self.env, clock=self.clock) as app:
            yield app

    def break_links(self, count: int, *, delivery: Delivery = Delivery.EACH) -> None:
        """So many links of one host break in MONDAY's run, which has just closed in time."""
        with self.open() as app:
            office = Office(app.store, clock=self.clock)
            office.employ(delivery=delivery)
            names = [f"page-{number:03d}" for number in range(count)]
            office.watch(**{name: f"https://docs.example.com/{name}" for name in names})
            office.run(dict.fromkeys(names, 404))

    def deliver(self) -> int:
        """One delivery; how many notices were accepted."""
        with self.open() as app:
            return app.deliver().sent

    def look(self) -> list[str]:
        """One look of the five-minute check, which tells on-call; the codes found."""
        with self.open() as app:
            findings = app.look()
            app.tell(findings)
            return [finding.code for finding in findings]

    def live(self, duration: timedelta, *, every: timedelta = LOOK_EVERY) -> set[str]:
        """Deliver and look again and again; all codes that were found meanwhile."""
        seen: set[str] = set()
        end = self.clock.now() + duration
        while self.clock.now() < end:
            self.deliver()
            seen.update(self.look())
            self.clock.advance(every)
        return seen

    def statuses(self) -> dict[str, int]:
        """How many notices stand where."""
        with self.open() as app:
            return dict(Counter(notice.status.value for notice in app.store.notices()))

    def arrived(self) -> Counter[str]:
        """How often each notice arrived at the mail server."""
        mails = [email.message_from_bytes(taken.original_content or b"") for taken in self.mail.accepted]
        return Counter(str(mail["X-Linkwatch-Transition"]) for mail in mails)

    def told(self) -> list[str]:
        """What on-call was told, in order."""
        return [str(alarm["kind"]) for alarm in self.on_call.told]


@contextmanager
def desk(folder: Path, *, mail_is_up: bool = True) -> Iterator[Desk]:
    """A new home, on MONDAY at 09:20. With `mail_is_up` false its mail server is down until `Desk.mail.running()`."""
    on_call = OnCallServer()
    with reserved_port() as port, on_call.running():
        mail = MailServer(_authority(), security="none", login=False, port=port)
        with mail.running() if mail_is_up else nullcontext():
            yield Desk(folder / "home", VirtualClock(after(minutes=20)), mail, on_call)


@cache
def _authority() -> trustme.CA:
    return trustme.CA()
