"""The JSON shapes of the command line (ARCHITECTURE 6): field for field what the contract lists."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from linkwatch_pipeline.domain.allowances import Allowance, host_of
from linkwatch_pipeline.domain.coverage import completeness, coverage
from linkwatch_pipeline.domain.health_findings import Finding
from linkwatch_pipeline.domain.links import Ack, Link
from linkwatch_pipeline.domain.mutes import Mute, MuteView
from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.runs import JobRecord, Ruling, Run, RunCounts
from linkwatch_pipeline.domain.timestamps import format_utc
from linkwatch_pipeline.domain.transitions import Transition
from linkwatch_pipeline.use_cases.health_history import PastTrouble
from linkwatch_pipeline.use_cases.inspect import History, HostView, RunView

Document = dict[str, object]


def link_document(link: Link, mute: Mute | None = None) -> Document:
    """A link, with where it stands in the handbook, and the mute that keeps it quiet now."""
    return {
        "id": link.id,
        "url": link.url,
        "owner": link.owner,
        "marker": link.marker,
        "confirm": link.confirm,
        "config_version": link.config_version,
        "state": link.state.value,
        "state_since": moment(link.state_since),
        "version": link.version,
        "last_sequence": link.last_sequence,
        "broken_streak": link.broken_streak,
        "retired_at": moment(link.retired_at),
        "places": [{"file": place.file, "line": place.line} for place in link.places],
        "ack": _ack_document(link.acknowledged),
        "muted_until": moment(mute.over_at) if mute is not None else None,
    }


def mute_document(view: MuteView, *, now: datetime) -> Document:
    """A mute and what it covers."""
    mute = view.mute
    return {
        "target": mute.target,
        "active": mute.is_active(now),
        "reason": mute.reason,
        "by": mute.muted_by,
        "since": moment(mute.since),
        "until": moment(mute.until),
        "ended_at": moment(mute.ended_at),
        "links": view.links,
        "broken": view.broken,
    }


def observation_document(observation: Observation) -> Document:
    """An observation; times to the microsecond, durations in milliseconds."""
    return {
        "job_id": observation.job_id,
        "run_id": observation.run_id,
        "link_id": observation.link_id,
        "sequence": observation.sequence,
        "config_version": observation.config_version,
        "rules_version": observation.rules_version,
        "retry_of": observation.retry_of,
        "started_at": moment(observation.started_at),
        "observed_at": moment(observation.observed_at),
        "status": observation.status,
        "outcome": observation.outcome.value,
        "reason": observation.reason.value if observation.reason is not None else None,
        "content_hash": observation.content_hash,
        "content_complete": observation.content_complete,
        "marker_found": observation.marker_found,
        "bytes_read": observation.bytes_read,
        "latency_ms": observation.latency_ms,
        "content_type": observation.content_type,
        "final_url": observation.final_url,
        "redirects": [{"url": hop.url, "status": hop.status} for hop in observation.redirects],
        "tls_not_after": moment(observation.tls_not_after),
        "page_hints": list(observation.page_hints),
    }


def transition_document(transition: Transition) -> Document:
    """A change of state."""
    return {
        "id": transition.id,
        "link_id": transition.link_id,
        "from_state": transition.from_state.value,
        "to_state": transition.to_state.value,
        "version": transition.version,
        "sequence": transition.sequence,
        "job_id": transition.job_id,
        "at": moment(transition.at),
    }


def notice_document(notice: Notice) -> Document:
    """How the telling of a transition stands."""
    return {
        "transition_id": notice.transition_id,
        "status": notice.status.value,
        "attempts": notice.attempts,
        "provider_id": notice.provider_id,
        "last_error": notice.last_error,
        "next_attempt_at": moment(notice.next_attempt_at),
        "run_id": notice.run_id,
        "release_at": moment(notice.release_at),
        "mail_id": notice.mail_id,
    }


def history_document(history: History) -> Document:
    """All records of one link or of all."""
    return {
        "links": [link_document(link, history.mutes.get(link.id)) for link in history.links],
        "observations": [observation_document(observation) for observation in history.observations],
        "transitions": [transition_document(transition) for transition in history.transitions],
        "outbox": [notice_document(notice) for notice in history.notices],
    }


def run_document(view: RunView, agreed: Mapping[str, Allowance]) -> Document:
    """A run: its summary, its hosts (or their slots, with what was agreed), and what was observed, in order."""
    return {
        "run": run_summary(view.run, view.counts),
        "hosts": [_host_document(host, agreed) for host in view.hosts],
        "transcript": [
            {
                "host": host,
                "link_id": observation.link_id,
                "job_id": observation.job_id,
                "started_at": moment(observation.started_at),
                "observed_at": moment(observation.observed_at),
                "status": observation.status,
                "outcome": observation.outcome.value,
                "reason": observation.reason.value if observation.reason is not None else None,
            }
            for host, observation in view.transcript
        ],
    }


def run_summary(run: Run, counts: RunCounts) -> Document:
    """A run's times and arithmetic."""
    return {
        "run_id": run.run_id,
        "state": run.state.value,
        "retry_of": run.retry_of,
        "intended_at": moment(run.intended_at),
        "started_at": moment(run.started_at),
        "deadline_at": moment(run.deadline_at),
        "dispatched_at": moment(run.dispatched_at),
        "closed_at": moment(run.closed_at),
        "expected": run.expected,
        "dispatched": run.dispatched,
        "completed": counts.terminal,
        "outcomes": dict(counts.by_end),
        "completeness": completeness(counts),
        "coverage": coverage(counts),
        "ruling": _ruling_document(run.ruling),
    }


def recorded_document(observation: Observation, link: Link, result: str, transition: Transition | None) -> Document:
    """What one look brought: the observation's fields, `result` (applied, history, duplicate), the link after it."""
    return {
        **observation_document(observation),
        "result": result,
        "duplicate": result == "duplicate",
        "state": link.state.value,
        "version": link.version,
        "transition": transition_document(transition) if transition is not None else None,
    }


def finding_document(finding: Finding) -> Document:
    """One thing that is not well."""
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "subject": finding.subject,
        "detail": finding.detail,
        "since": moment(finding.since),
    }


def past_trouble_document(trouble: PastTrouble) -> Document:
    """A week that was missed or late."""
    return {
        "run_id": trouble.run_id,
        "what": trouble.what.value,
        "intended_at": moment(trouble.intended_at),
        "noticed_at": moment(trouble.noticed_at),
    }


def moment(value: datetime | None) -> str | None:
    """RFC 3339 with `Z`."""
    return format_utc(value) if value is not None else None


def _ack_document(ack: Ack | None) -> Document | None:
    return {"reason": ack.reason, "by": ack.by, "at": moment(ack.at)} if ack is not None else None


def _ruling_document(ruling: Ruling | None) -> Document | None:
    if ruling is None:
        return None
    return {"kind": ruling.kind.value, "at": moment(ruling.at), "by": ruling.by, "why": ruling.why}


def _host_document(host: HostView, agreed: Mapping[str, Allowance]) -> Document:
    allowance = agreed.get(host_of(host.host))
    return {
        "host": host.host,
        "agreed_with": allowance.agreed_with if allowance is not None else None,
        "jobs": host.jobs,
        "remaining": host.remaining,
        "outcomes": dict(host.outcomes),
        "active_requests": host.active_requests,
        "next_due_at": moment(host.next_due_at),
        "oldest_due_age_seconds": host.due_for.total_seconds() if host.due_for is not None else None,
        "throttled_in_a_row": host.throttled_in_a_row,
        "first_observed_at": moment(host.first_observed_at),
        "last_observed_at": moment(host.last_observed_at),
    }


def job_document(job: JobRecord, redriven_as: JobRecord | None) -> Document:
    """A job that was given up, or one that looks again for it."""
    return {
        "job_id": job.job_id,
        "run_id": job.run_id,
        "link_id": job.link_id,
        "host": job.host,
        "sequence": job.sequence,
        "status": job.status.value,
        "reason": job.reason.value if job.reason is not None else None,
        "retry_of": job.retry_of,
        "redriven_as": redriven_as.job_id if redriven_as is not None else None,
    }
