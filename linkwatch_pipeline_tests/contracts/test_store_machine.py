"""Any order of calls on a store, compared with a model: plain dicts and the sentences of SPEC 4, 5 and 8, nothing else.

The model knows neither `plan_record` nor `admit`: it is a second, naive telling of the same promises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from linkwatch_pipeline.domain.errors import ConflictingContent, NotFound, StaleWrite
from linkwatch_pipeline.domain.hosts import Admitted, Departure
from linkwatch_pipeline.domain.links import AllocationSlot, Link
from linkwatch_pipeline.domain.mutes import Mute
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import JobRecord, JobStatus, Ruling, RulingKind
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline_tests.builders import a_chain, a_job, a_link, a_run, after, an_observation, linked

HOST_OF = {"a": "x.example.com", "b": "x.example.com", "c": "y.example.com"}
RUN_IDS = [a_run(after(days=7 * week)).run_id for week in range(2)]
STATUSES = [200, 200, 404, 404, 410, 429, 500, None]
MEANING = {200: "reachable", 404: "broken", 410: "broken", 429: "throttled", 500: "uncertain", None: "uncertain"}

link_ids = st.sampled_from(["a", "a", "a", "b", "b", "c"])
run_ids = st.sampled_from(RUN_IDS)
picks = st.integers(0, 50)
hosts = st.sampled_from(sorted(set(HOST_OF.values())))
statuses = st.sampled_from(STATUSES)
bodies = st.sampled_from([b"one", b"one", b"two"])
senders = st.sampled_from(["sender-1", "sender-2"])


@dataclass
class Model:
    """What has to be stored. Times are seconds after MONDAY."""

    links: dict[str, dict[str, Any]] = field(default_factory=dict)
    looks: dict[tuple[str, int], tuple[str, object]] = field(default_factory=dict)  # job id, content
    jobs: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    chains: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    transitions: dict[str, tuple[str, str]] = field(default_factory=dict)
    notices: dict[str, dict[str, Any]] = field(default_factory=dict)
    rulings: dict[str, Ruling] = field(default_factory=dict)
    mutes: dict[str, Mute] = field(default_factory=dict)

    def record(self, look: Observation, content: object, now: int) -> str:
        """What `record` has to answer: a kind, `not found` or `conflict`. Changes the model accordingly."""
        link = self.links.get(look.link_id)
        if link is None:
            return "not found"
        job = None
        if look.run_id is not None:
            job = self.jobs.get((look.run_id, look.link_id))
            if job is None:
                return "not found"
            if job["status"] == "done":
                return "duplicate" if job["content"] == content else "conflict"
            if job["status"] != "pending":
                return "job_ended"
        held = self.looks.get((look.link_id, look.sequence))
        if held is not None:
            if held[0] == look.job_id:
                return "duplicate" if held[1] == content else "conflict"
            if job is None:
                return "conflict"
            self.end(look.run_id, look.link_id, "cancelled", "cancelled")
            return "sequence_taken"
        if look.config_version != link["config"] or link["retired"]:
            if job is None:
                return "conflict"
            self.end(look.run_id, look.link_id, "cancelled", "cancelled")
            return "config_changed"
        if look.url != link["url"]:
            return "conflict"
        self.looks[look.link_id, look.sequence] = (look.job_id, content)
        if job is not None:
            job["content"] = content
            self.end(look.run_id, look.link_id, "done", MEANING[look.status])
        if look.sequence <= link["last"]:
            return "history"
        link["last"] = look.sequence
        self.follow(look.link_id, MEANING[look.status], now, released=look.run_id is None)
        return "applied"

    def follow(self, link_id: str, meaning: str, now: int, *, released: bool) -> None:
        link = self.links[link_id]
        before = link["state"]
        if meaning in ("reachable", "broken") and meaning != before:
            link["state"] = meaning
            link["version"] += 1
            if (before, meaning) != ("unknown", "reachable"):
                name = f"{link_id}:{link['version']}"
                self.transitions[name] = (before, meaning)
                self.notices[name] = {
                    "status": "pending", "by": None, "from": now, "until": None, "released": released,
                }  # fmt: skip

    def end(self, run_id: str | None, link_id: str, status: str, counted_as: str) -> None:
        assert run_id is not None
        job = self.jobs[run_id, link_id]
        job["status"] = status
        chain = self.chains[run_id, HOST_OF[link_id]]
        chain["remaining"] -= 1
        chain["counts"][counted_as] = chain["counts"].get(counted_as, 0) + 1
        if status == "done":
            chain["streak"] = chain["streak"] + 1 if counted_as == "throttled" else 0
        self.step(run_id, link_id)

    def step(self, run_id: str, link_id: str) -> bool:
        chain = self.chains[run_id, HOST_OF[link_id]]
        if chain["head"] != link_id:
            return False
        allowed = self.hosts.get(HOST_OF[link_id], {}).get("allowed")
        chain["head"] = self.jobs[run_id, link_id]["next"]
        chain["ready"] = max(chain["ready"], allowed if allowed is not None else chain["ready"])
        chain["resends"] = 0
        return True


class StoreMachine(RuleBasedStateMachine):
    def __init__(self, open_store: Callable[[], Store]) -> None:
        super().__init__()
        self.open_store = open_store
        self.store = open_store()
        self.model = Model()
        self.now = 0
        self.visits = 0
        self.old_reads: dict[str, Link] = {}
        self.said: list[Observation] = []

    @initialize()
    def a_week_begins(self) -> None:
        for link_id in ("a", "b"):
            self.register(link_id)
        self.dispatch(RUN_IDS[0])

    def teardown(self) -> None:
        self.store.close()

    def link(self, link_id: str) -> Link:
        """The link as it is, or as it would be if somebody had registered it."""
        return self.store.get_link(link_id) or a_link(link_id, f"https://{HOST_OF[link_id]}/{link_id}")

    @rule(seconds=st.sampled_from([1, 5, 30, 61, 130]))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    @rule()
    def another_process_goes_on(self) -> None:
        self.store.close()
        self.store = self.open_store()

    # the registry

    @rule(link_id=link_ids)
    def register(self, link_id: str) -> None:
        link = a_link(link_id, f"https://{HOST_OF[link_id]}/{link_id}")
        if link_id in self.model.links:
            with pytest.raises(StaleWrite):
                self.store.save_link(link, replaces=None)
            return
        self.store.save_link(link, replaces=None)
        self.model.links[link_id] = {
            "url": link.url,
            "config": 1,
            "retired": False,
            "state": "unknown",
            "version": 0,
            "last": -1,
            "held": {},
        }

    @precondition(lambda self: self.model.links)
    @rule(link_id=link_ids, change=st.sampled_from(["marker", "move", "retire"]), stale=st.booleans())
    def reconfigure(self, link_id: str, change: str, stale: bool) -> None:
        read = self.store.get_link(link_id)
        if read is None:
            return
        version = read.config_version + 1
        changed = replace(read, config_version=version)
        if change == "marker":
            changed = replace(changed, marker=f"v{version}", retired_at=None)
        elif change == "move":
            changed = replace(changed, url=f"https://{HOST_OF[link_id]}/moved-{version}", retired_at=None)
        else:
            changed = replace(changed, retired_at=after(seconds=self.now))
        old = self.old_reads.get(link_id)
        self.old_reads[link_id] = read
        if stale and old is not None and old != read:
            with pytest.raises(StaleWrite):
                self.store.save_link(changed, replaces=old)
            return
        self.store.save_link(changed, replaces=read)
        self.model.links[link_id].update(url=changed.url, config=version, retired=change == "retire")

    # recording

    @rule(
        link_id=link_ids, sequence=st.integers(0, 7), status=statuses, body=bodies, other_url=st.sampled_from([0, 0, 1])
    )
    def record_by_hand(self, link_id: str, sequence: int, status: int | None, body: bytes, other_url: int) -> None:
        look = an_observation(self.link(link_id), status, sequence=sequence, body=body)
        self.record(replace(look, url=look.url + "-other") if other_url else look)

    @precondition(lambda self: self.model.jobs)
    @rule(pick=picks, status=statuses, body=bodies)
    def record_for_a_job(self, pick: int, status: int | None, body: bytes) -> None:
        job = self.pick_job(pick)
        self.record(an_observation(self.link(job.link_id), status, job=job, body=body))

    @rule(link_id=link_ids, status=statuses)
    def record_for_a_job_that_nobody_made(self, link_id: str, status: int | None) -> None:
        link = self.link(link_id)
        self.record(an_observation(link, status, job=a_job(link, run_id="2020-01-06T09:00:00Z")))

    @precondition(lambda self: self.said)
    @rule(pick=picks, seconds=st.integers(0, 9), other_body=st.sampled_from([False, False, True]))
    def say_it_again(self, pick: int, seconds: int, other_body: bool) -> None:
        look = self.said[pick % len(self.said)]
        again = replace(look, observed_at=look.observed_at + timedelta(seconds=seconds))
        self.record(replace(again, content_hash="0" * 64) if other_body else again)

    def pick_job(self, pick: int) -> JobRecord:
        run_id, link_id = sorted(self.model.jobs)[pick % len(self.model.jobs)]
        job = self.store.get_job(run_id, link_id)
        assert job is not None
        return job

    def record(self, look: Observation) -> None:
        self.said.append(look)
        content = (look.url, look.sequence, look.config_version, look.status, look.content_hash)
        expected = self.model.record(look, content, self.now)
        try:
            answer = self.store.record(look, default_confirm=1, now=after(seconds=self.now)).kind.value
        except NotFound:
            answer = "not found"
        except ConflictingContent:
            answer = "conflict"
        assert answer == expected

    # runs

    @precondition(lambda self: self.model.links)
    @rule(run_id=run_ids)
    def dispatch(self, run_id: str) -> None:
        self.store.create_run(a_run(after(days=7 * RUN_IDS.index(run_id))))
        if any(known == run_id for known, _ in self.model.jobs):
            self.dispatch_again(run_id)
            return
        for host in sorted(set(HOST_OF.values())):
            links = [self.link(link_id) for link_id, known in sorted(self.model.links.items())
                     if HOST_OF[link_id] == host and not known["retired"]]  # fmt: skip
            if links:
                self.dispatch_host(run_id, host, links)

    def dispatch_host(self, run_id: str, host: str, links: list[Link]) -> None:
        promised = []
        for link in links:
            known = self.model.links[link.id]
            known["held"] = {run_id: max([known["last"], *known["held"].values()]) + 1}
            promised.append(known["held"][run_id])
        for _ in range(2):
            allocated = self.store.allocate(links, AllocationSlot.WEEKLY, run_id)
            assert [held and held.sequence for held in allocated] == promised
        jobs = linked([a_job(link, run_id=run_id, sequence=n) for link, n in zip(links, promised, strict=True)])
        self.store.put_jobs(jobs)
        assert self.store.put_chain(a_chain(jobs, head_ready_at=after(seconds=self.now)))
        for job in jobs:
            self.model.jobs[run_id, job.link_id] = {
                "sequence": job.sequence, "next": job.next, "status": "pending", "content": None, "deaths": 0,
            }  # fmt: skip
        self.model.chains[run_id, host] = {
            "head": jobs[0].link_id, "remaining": len(jobs), "total": len(jobs), "counts": {}, "streak": 0,
            "resends": 0, "ready": self.now,
        }  # fmt: skip

    def dispatch_again(self, run_id: str) -> None:
        for job in list(self.store.jobs(run_id)):
            self.store.put_jobs([replace(job, status=JobStatus.PENDING, sequence=99)])
            assert not self.store.put_chain(a_chain([job]))

    @precondition(lambda self: self.model.jobs)
    @rule(pick=picks)
    def end_a_job(self, pick: int) -> None:
        job = self.pick_job(pick)
        pending = self.model.jobs[job.run_id, job.link_id]["status"] == "pending"
        chain = self.store.end_job(job, status=JobStatus.EXPIRED, reason=Reason.STALLED)
        assert (chain is not None) is pending
        if pending:
            self.model.end(job.run_id, job.link_id, "expired", "expired")

    @precondition(lambda self: self.model.jobs)
    @rule(pick=picks)
    def step_past_a_terminal_job(self, pick: int) -> None:
        job = self.pick_job(pick)
        terminal = self.model.jobs[job.run_id, job.link_id]["status"] != "pending"
        expected = terminal and self.model.step(job.run_id, job.link_id)
        assert (self.store.step_chain(job) is not None) is expected

    @precondition(lambda self: self.model.jobs)
    @rule(pick=picks, seconds=st.integers(1, 60))
    def defer_the_head(self, pick: int, seconds: int) -> None:
        job = self.pick_job(pick)
        chain = self.model.chains[job.run_id, job.host]
        mine = chain["head"] == job.link_id and chain["ready"] <= self.now + 2
        until = self.now + seconds
        assert self.store.defer_head(job, until=after(seconds=until), now=after(seconds=self.now)) is mine
        if mine:
            chain["ready"] = until

    @rule(run_id=run_ids, host=hosts)
    def two_ticks_send_a_head_again(self, run_id: str, host: str) -> None:
        read = self.store.get_chain(run_id, host)
        if read is None:
            return
        chain = self.model.chains[run_id, host]
        first, second = (self.store.resend_head(read, now=after(seconds=self.now)) for _ in range(2))
        assert (first, second) == (chain["head"] is not None, False)
        if first:
            chain.update(resends=chain["resends"] + 1, ready=self.now)

    @rule(run_id=run_ids, host=hosts)
    def mend_a_chain(self, run_id: str, host: str) -> None:
        chain = self.model.chains.get((run_id, host))
        pending = [link_id for (run, link_id), job in sorted(self.model.jobs.items())
                   if run == run_id and HOST_OF[link_id] == host and job["status"] == "pending"]  # fmt: skip
        lost = chain is not None and chain["head"] is None and pending
        mended = self.store.rechain(run_id, host, now=after(seconds=self.now))
        assert bool(mended) is bool(lost)
        if lost and chain is not None:
            chain.update(head=pending[0], ready=self.now, resends=0)

    # hosts

    @rule(host=hosts, run_id=run_ids, link_id=link_ids, skew=st.sampled_from([0, 0, 1]))
    def enter(self, host: str, run_id: str, link_id: str, skew: int) -> None:
        self.visits += 1
        token = f"visit-{self.visits}"
        record = self.model.hosts.get(host, {"token": None, "allowed": None})
        held = record["token"] is not None and self.now < record["until"] + skew
        resting = record["allowed"] is not None and self.now < record["allowed"] + skew
        answer = self.store.acquire_host(
            host,
            token=token,
            job_id=f"{run_id}:{link_id}",
            now=after(seconds=self.now),
            skew=timedelta(seconds=skew),
        )
        assert isinstance(answer, Admitted) is not (held or resting)
        if isinstance(answer, Admitted):
            if record["token"] is not None:
                victim = self.model.jobs.get(record["job"])
                if victim is not None and victim["status"] == "pending":
                    victim["deaths"] += 1
            self.model.hosts[host] = {
                **record, "token": token, "job": (run_id, link_id), "until": self.now + 60,
            }  # fmt: skip

    @rule(host=hosts, earlier=st.sampled_from([0, 0, 1]), pause=st.sampled_from([None, None, 10, 40]))
    def leave(self, host: str, earlier: int, pause: int | None) -> None:
        record = self.model.hosts.get(host)
        token = record["token"] if record is not None and not earlier else f"visit-{self.visits - 7}"
        mine = record is not None and token is not None and record["token"] == token
        left = self.store.release_host(
            host,
            token=token or "nobody",
            departure=Departure(
                at=after(seconds=self.now),
                answered=True,
                asked_to_pause=pause is not None,
                retry_after=timedelta(seconds=pause) if pause is not None else None,
            ),
            cooldown=timedelta(seconds=1),
            chance=Random(0),
        )
        assert (left is not None) is mine
        if mine and record is not None:
            allowed = max(self.now + (pause or 1), record["allowed"] or 0)
            record.update(token=None, job=None, until=None, allowed=allowed)

    # notices

    @precondition(lambda self: self.model.notices)
    @rule(by=senders, pick=picks)
    def claim(self, by: str, pick: int) -> None:
        name, notice = sorted(self.model.notices.items())[pick % len(self.model.notices)]
        free = (notice["status"] == "pending" and notice["released"]) or (
            notice["status"] == "claimed" and self.now >= notice["until"]
        )
        claimed = self.store.claim_notice(name, by=by, now=after(seconds=self.now))
        assert (claimed is not None) is free
        if free:
            notice.update(status="claimed", by=by, until=self.now + 120)

    @precondition(lambda self: self.model.notices)
    @rule(by=senders, pick=picks, status=st.sampled_from(["sent", "failed", "pending"]))
    def save(self, by: str, pick: int, status: str) -> None:
        name, known = sorted(self.model.notices.items())[pick % len(self.model.notices)]
        notice = self.store.get_notice(name)
        assert notice is not None
        holder = None if status == "pending" else by
        written = replace(notice, status=NoticeStatus(status), claimed_by=holder)
        assert self.store.save_notice(written, claimed_by=by) is (known["by"] == by)
        if known["by"] == by:
            known.update(status=status, by=holder)

    @precondition(lambda self: self.model.notices)
    @rule(pick=picks, stale=st.booleans(), status=st.sampled_from(["pending", "held", "muted", "discarded"]))
    def decide_about_a_notice(self, pick: int, stale: bool, status: str) -> None:
        name, known = sorted(self.model.notices.items())[pick % len(self.model.notices)]
        notice = self.store.get_notice(name)
        assert notice is not None
        decided = replace(notice, status=NoticeStatus(status), release_at=after(seconds=known["from"]), claimed_by=None)
        read = replace(notice, attempts=notice.attempts + 1) if stale else notice
        assert self.store.update_notice(decided, replaces=read) is not stale
        if not stale:
            known.update(status=status, by=None, released=True)

    @rule(run_id=run_ids, kind=st.sampled_from(list(RulingKind)), stale=st.booleans())
    def rule_on_a_run(self, run_id: str, kind: RulingKind, stale: bool) -> None:
        run = self.store.get_run(run_id)
        if run is None:
            return
        ruling = Ruling(kind=kind, at=after(seconds=self.now), why=f"at {self.now}")
        read = Ruling(kind=kind, at=after(days=-1)) if stale else run.ruling
        assert self.store.rule_on_run(run_id, ruling, replaces=read) is not stale
        if not stale:
            self.model.rulings[run_id] = ruling

    @rule(what=st.sampled_from(["link:a", "host:x.example.com"]), reason=bodies, stale=st.booleans())
    def mute(self, what: str, reason: bytes, stale: bool) -> None:
        known = self.model.mutes.get(what)
        muted = Mute(
            target=what,
            reason=reason.decode(),
            muted_by=None,
            since=after(seconds=self.now),
            until=after(days=1),
        )
        read = muted if stale and known is None else None if stale else known
        assert self.store.save_mute(muted, replaces=read) is not stale
        if not stale:
            self.model.mutes[what] = muted

    # what has to hold after every step

    @invariant()
    def decisions_agree(self) -> None:
        assert {run.run_id: run.ruling for run in self.store.runs() if run.ruling is not None} == self.model.rulings
        assert {mute.target: mute for mute in self.store.mutes()} == self.model.mutes

    @invariant()
    def links_agree(self) -> None:
        stored = {
            link.id: (
                link.url, link.config_version, link.retired_at is not None, link.state.value, link.version,
                link.last_sequence, {held.run_id: held.sequence for held in link.allocations.values()},
            )
            for link in self.store.links()
        }  # fmt: skip
        assert stored == {link_id: tuple(known.values()) for link_id, known in self.model.links.items()}

    @invariant()
    def history_agrees(self) -> None:
        looks = {(look.link_id, look.sequence): look.job_id for look in self.store.observations()}
        assert looks == {key: job_id for key, (job_id, _) in self.model.looks.items()}
        transitions = {t.id: (t.from_state.value, t.to_state.value) for t in self.store.transitions()}
        assert transitions == self.model.transitions
        notices = {n.transition_id: (n.status.value, n.claimed_by) for n in self.store.notices()}
        assert notices == {name: (known["status"], known["by"]) for name, known in self.model.notices.items()}

    @invariant()
    def runs_agree(self) -> None:
        jobs, chains = {}, {}
        for run_id in RUN_IDS:
            for job in self.store.jobs(run_id):
                jobs[run_id, job.link_id] = (job.sequence, job.next, job.status.value, job.deaths)
            for chain in self.store.chains(run_id):
                chains[run_id, chain.host] = (
                    chain.head, chain.remaining, chain.total, chain.counts, chain.streak, chain.resends,
                    (chain.head_ready_at - after()).total_seconds(),
                )  # fmt: skip
        assert jobs == {
            key: (known["sequence"], known["next"], known["status"], known["deaths"])
            for key, known in self.model.jobs.items()
        }
        assert chains == {key: tuple(known.values()) for key, known in self.model.chains.items()}

    @invariant()
    def hosts_agree(self) -> None:
        for host, known in self.model.hosts.items():
            record = self.store.get_host(host)
            assert record is not None
            allowed = record.next_allowed_at
            stored = (record.owner_token, allowed and (allowed - after()).total_seconds())
            assert stored == (known["token"], known["allowed"])


def play(new_storage: Callable[[], Callable[[], Store]], **how: Any) -> None:
    run_state_machine_as_test(
        cast(type[RuleBasedStateMachine], lambda: StoreMachine(new_storage())),  # any callable will do
        settings=settings(deadline=None, database=None, suppress_health_check=list(HealthCheck), **how),
    )


def test_any_order_of_calls_gives_what_the_model_says(
    new_storage: Callable[[], Callable[[], Store]], examples: int
) -> None:
    play(new_storage, max_examples=examples, stateful_step_count=50, derandomize=True)


@pytest.mark.campaign
def test_many_more_orders_of_calls_give_what_the_model_says(new_storage: Callable[[], Callable[[], Store]]) -> None:
    play(new_storage, max_examples=1500, stateful_step_count=80)
