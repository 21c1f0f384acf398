"""`linkwatch dead-letters` and `enqueue`: jobs that were given up, and jobs that should not wait for the tick."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from linkwatch_pipeline.entrypoints.cli import values
from linkwatch_pipeline.entrypoints.cli.opening import open_app, refuse, warn
from linkwatch_pipeline.entrypoints.cli.output import complain, one_line, print_json, print_table, say

if TYPE_CHECKING:
    from linkwatch_pipeline.bootstrap import App


@click.command("dead-letters")
@click.option("--redrive", "job_id", metavar="ID", help="Look again at this job's link, as a new job in a retry run.")
@click.option("--all", "everything", is_flag=True, help="The same for every job listed that was not redriven yet.")
@values.as_json
@click.pass_context
def dead_letters(context: click.Context, job_id: str | None, everything: bool, as_json: bool) -> int:
    """List the jobs that were given up in the last 14 days, or redrive them."""
    from linkwatch_pipeline.domain.reasons import Reason
    from linkwatch_pipeline.entrypoints.cli import documents
    from linkwatch_pipeline.use_cases.dead_letters import dead_letters as list_letters
    from linkwatch_pipeline.use_cases.dead_letters import letters_by_hand

    if job_id is not None and everything:
        raise click.UsageError("Give --redrive or --all, not both.", context)
    with open_app(context, if_unfinished=refuse if job_id is not None or everything else warn) as app:
        if job_id is not None:
            return _redrive(app, [job_id], as_json)
        letters, by_hand = list(list_letters(app.store, now=app.clock.now())), letters_by_hand(app.work_queue)
        if everything:
            left = [letter.job.job_id for letter in letters if letter.redriven_as is None]
            return _redrive(app, left + [letter.job_id for letter in by_hand], as_json)
    if as_json:
        print_json(
            [documents.job_document(letter.job, letter.redriven_as) for letter in letters]
            + [documents.hand_letter_document(letter) for letter in by_hand]
        )
        return 0
    print_table(
        ("JOB", "HOST", "REASON", "REDRIVEN AS"),
        [
            (
                letter.job.job_id,
                letter.job.host,
                letter.job.reason.value if letter.job.reason is not None else None,
                letter.redriven_as.job_id if letter.redriven_as is not None else None,
            )
            for letter in letters
        ]
        + [(letter.job_id, None, Reason.DEAD_LETTER.value, None) for letter in by_hand],
    )
    return 0


@click.command()
@click.argument("link_id", type=values.link_id)
@click.pass_context
def enqueue(context: click.Context, link_id: str) -> None:
    """Send a link's pending job on its way once more; in the profile aws, a check by hand if there is none."""
    from linkwatch_pipeline.use_cases.enqueue import enqueue as send_again

    with open_app(context) as app:
        job = send_again(app.store, app.work_queue, link_id=link_id)
        if app.work_queue is not None:
            say(f"sent: {job.job_id}")
        else:
            say(
                f"pending: {job.job_id}. The queue of this home lives in the process that works on the run: "
                f"'linkwatch resume {job.run_id}' checks it, if none does already."
            )


def _redrive(app: App, job_ids: list[str], as_json: bool) -> int:
    """Redrive and tell; 2 if the one job that was named is refused, 1 if some of many are."""
    from linkwatch_pipeline.entrypoints.cli import documents
    from linkwatch_pipeline.use_cases.redrive import redrive

    done = redrive(app.store, job_ids, now=app.clock.now(), queue=app.work_queue)
    for job_id, why in done.refused.items():
        complain(f"{one_line(job_id)} {why}.")
    if as_json and (done.jobs or done.sent_again or not done.refused):
        print_json(documents.redriven_document(done))
    elif not as_json:
        for letter in done.sent_again:
            say(f"sent again: {letter.job_id}")
        for job in done.jobs:
            say(f"redriven: {job.retry_of} as {job.job_id}")
        for run_id in sorted({job.run_id for job in done.jobs}):
            say(
                f"the next tick sends those of {run_id}"
                if app.on_aws
                else f"'linkwatch resume {run_id}' checks them, if no other process works on runs"
            )
        if not job_ids:
            say("there is nothing to redrive")
    if not done.refused:
        return 0
    return 1 if done.jobs or done.sent_again else 2
