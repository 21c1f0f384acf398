"""One week of the functions as released, as the schedules, the mapping and SES call them, in virtual time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from linkwatch_pipeline.domain.errors import LinkwatchError
from linkwatch_pipeline.domain.links import LinkState, Owner
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.domain.runs import JobStatus
from linkwatch_pipeline.domain.timestamps import format_seconds
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline_tests.builders import MONDAY, RUN_ID, a_link
from linkwatch_pipeline_tests.entrypoints.functions import Functions
from linkwatch_pipeline_tests.virtual_clock import VirtualClock
from linkwatch_pipeline_tests.world.ses_server import SesServer, in_topic, ses_event

SITES = {"docs.example.com": {"pages": {"/gone": 404, "/ok": 200}}, "api.example.com": {"pages": {"/ok": 200}}}
URLS = ("http://docs.example.com/gone", "http://docs.example.com/ok", "http://api.example.com/ok")
ROUNDS = 20
BEGINNINGS = 6  # of the week, by the schedules
LATER = timedelta(minutes=6)  # a message that was not acknowledged is there again
MUCH_LATER = timedelta(minutes=65)  # a mail in doubt is sent again
REST = timedelta(seconds=3)  # the host's next job comes after a second, and one more for the skew of clocks


class Killed(BaseException):
    """The process of the functions ends here and now, as when its time or its memory is used up."""


@dataclass
class PlayedWeek:
    """One play: its functions, its time, and a store to look with. `equip` gives a new process its clients."""

    functions: Functions
    clock: VirtualClock
    store: Store
    ses: SesServer
    equip: Callable[[Functions], None]
    _heard: int = 0  # events about mails that the function has taken

    def begin(self) -> None:
        """Register what the week is about."""
        self.equip(self.functions)
        self.store.put_owner(Owner(team="docs-team", address="docs@example.com"))
        for number, url in enumerate(URLS):
            self.store.save_link(a_link(f"link-{number}", url), replaces=None)

    def to_the_end(self) -> None:
        """As the schedules and the mapping go on, whatever fails; each round is some minutes later."""
        for number in range(ROUNDS):
            begin = [self._begin] if number < BEGINNINGS else []
            for step in (*begin, self._tick, self._work, self._rest_and_work, self._tick, self._notify, self._hear):
                self._called(step)
            self._called(lambda: self.functions.call("health"))
            if self._is(NoticeStatus.DELIVERED):
                return
            self.clock.advance(MUCH_LATER if number % 2 and self._is_over() else LATER)

    def afterwards(self) -> None:
        """What is still on its way arrives, and the schedules go on; nothing fails any more."""
        self.clock.advance(MUCH_LATER)
        self._work()
        self._tick()
        self._notify()
        assert self.functions.call("health") == {"healthy": True, "findings": 0}

    def assert_whole(self) -> None:
        store, functions = self.store, self.functions
        run = store.get_run(RUN_ID)
        assert run is not None
        assert run.totals is not None, "the run did not end"
        assert dict(run.totals.by_end) == {"broken": 1, "reachable": 2}
        assert [run.run_id for run in store.runs()] == [RUN_ID]
        job_ids = [f"{RUN_ID}:link-{n}" for n in range(3)]
        assert sorted(seen.job_id for seen in store.observations()) == job_ids
        assert sorted((job.job_id, job.status) for job in store.jobs(RUN_ID)) == [(i, JobStatus.DONE) for i in job_ids]
        assert [change.id for change in store.transitions()] == ["link-0:1"]
        (notice,) = store.notices()
        assert (notice.transition_id, notice.status) == ("link-0:1", NoticeStatus.DELIVERED)
        chains = list(store.chains(RUN_ID))
        assert {chain.host: (chain.head, chain.remaining, chain.total) for chain in chains} == {
            "api.example.com": (None, 0, 1), "docs.example.com": (None, 0, 2),
        }  # fmt: skip
        assert sum((Counter(chain.counts) for chain in chains), Counter()) == {"broken": 1, "reachable": 2}
        assert [(link.state, link.last_sequence) for link in store.links()] == [
            (LinkState.BROKEN, 0), (LinkState.REACHABLE, 0), (LinkState.REACHABLE, 0),
        ]  # fmt: skip
        assert [host.owner_token for host in store.hosts()] == [None, None]
        for url in (functions.queue_url, functions.dead_letter_url):
            for name in ("", "Delayed", "NotVisible"):
                assert functions.depth(url, f"ApproximateNumberOfMessages{name}") == 0

    def _begin(self) -> None:
        self.functions.call("dispatch", {"action": "dispatch", "scheduled_time": format_seconds(MONDAY)})

    def _tick(self) -> None:
        self.functions.call("dispatch", {"action": "tick"})

    def _work(self) -> None:
        for record in self.functions.waiting():
            self._called(lambda record=record: self._check(record))  # type: ignore[misc]

    def _check(self, record: dict[str, Any]) -> None:
        self.functions.acknowledge([record], self.functions.call("check", {"Records": [record]}))

    def _rest_and_work(self) -> None:
        self.clock.advance(REST)
        self._work()

    def _notify(self) -> None:
        self.functions.call("notify")

    def _hear(self) -> None:
        """SES's events come late: those of a mail whose answer was lost after it was sent again."""
        if not self._is(NoticeStatus.SENT):
            return
        for mail in self.ses.accepted[self._heard :]:
            body = json.dumps(in_topic(ses_event(mail, "Delivery")))
            record = {"messageId": mail.message_id, "receiptHandle": "h", "body": body}
            if self.functions.call("mail_events", {"Records": [record]})["batchItemFailures"]:
                return
            self._heard += 1

    def _is_over(self) -> bool:
        run = self.store.get_run(RUN_ID)
        return run is not None and run.state.is_over

    def _is(self, status: NoticeStatus) -> bool:
        """Whether the run is over, and this has become of its notices."""
        return self._is_over() and all(notice.status is status for notice in self.store.notices())

    def _called(self, step: Callable[[], object]) -> None:
        """A function that fails, by a word of ours, or dies, is called again by Amazon, or by the next minute."""
        try:
            step()
        except LinkwatchError:
            pass
        except Killed:
            self.functions.new_process()
            self.equip(self.functions)
