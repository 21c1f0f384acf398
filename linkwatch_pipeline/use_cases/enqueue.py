"""Send a link's pending job on its way once more: for a person who does not want to wait for the tick."""

from __future__ import annotations

from linkwatch_pipeline.domain.errors import NotFound
from linkwatch_pipeline.domain.links import check_link_id
from linkwatch_pipeline.domain.runs import JobRecord, JobStatus
from linkwatch_pipeline.ports import Queue, Store


def enqueue(store: Store, queue: Queue | None, *, link_id: str) -> JobRecord:
    """The link's pending job in the latest open run, its message sent. One copy more does no harm: copies die out.

    Args: queue: None where messages live only in the process that works on the run, which sends every pending job.
    Raises: InvalidInput, NotFound (no such link, no pending job).
    """
    if store.get_link(check_link_id(link_id)) is None:
        raise NotFound(f"there is no link {link_id!r}; 'linkwatch links' shows them.")
    jobs = [store.get_job(run.run_id, link_id) for run in store.runs(open_only=True)]
    pending = [job for job in jobs if job is not None and job.status is JobStatus.PENDING]
    if not pending:
        raise NotFound(
            f"link {link_id!r} has no pending job in an open run. 'linkwatch run' begins the week's run; "
            f"'linkwatch check {link_id}' looks at the link now."
        )
    if queue is not None:
        queue.send([pending[-1].message])
    return pending[-1]
