"""Dead letters as JSON documents (docs/reference/json.md): jobs that were given up, and what else lies in the queue."""

from __future__ import annotations

from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import CheckJob, JobRecord, JobStatus
from linkwatch_pipeline.entrypoints.cli.documents import Document, job_document
from linkwatch_pipeline.ports import StrayLetter
from linkwatch_pipeline.use_cases.dead_letters import DeadLetter
from linkwatch_pipeline.use_cases.redrive import Redriven


def letter_document(letter: DeadLetter) -> Document:
    """A job that was given up."""
    return {**job_document(letter.job, letter.redriven_as), "problem": None, "beginning": None}


def waiting_document(job: JobRecord) -> Document:
    """A pending job whose letter the next tick is going to see."""
    return {**job_document(job, None), "problem": "its job is pending until the next tick", "beginning": None}


def hand_letter_document(letter: CheckJob) -> Document:
    """A check by hand that was given up, with the fields of a job."""
    return {
        "job_id": letter.job_id,
        "run_id": None,
        "link_id": letter.link_id,
        "host": None,
        "sequence": letter.sequence,
        "status": JobStatus.ABANDONED.value,
        "reason": Reason.DEAD_LETTER.value,
        "retry_of": None,
        "redriven_as": None,
        "problem": None,
        "beginning": None,
    }


def stray_document(stray: StrayLetter) -> Document:
    """A letter that no redrive can help, with the fields of a job; `job_id` is what it is discarded by."""
    fields = ("run_id", "link_id", "host", "sequence", "status", "reason", "retry_of", "redriven_as")
    empty = dict.fromkeys(fields)
    return {"job_id": stray.letter_id, **empty, "problem": stray.problem, "beginning": stray.beginning or None}


def redriven_document(done: Redriven) -> Document:
    """What a redrive made, and what it could not."""
    return {
        "jobs": [job_document(job, None) for job in done.jobs],
        "sent_again": [letter.job_id for letter in done.sent_again],
        "refused": [{"job_id": job_id, "why": why} for job_id, why in done.refused.items()],
    }
