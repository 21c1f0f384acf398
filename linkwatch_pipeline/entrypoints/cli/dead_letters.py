"""`linkwatch dead-letters` and `enqueue`: jobs that were given up, and jobs that should not wait for the tick."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from linkwatch_pipeline.entrypoints.cli import values
from linkwatch_pipeline.entrypoints.cli.opening import exit_code_of, open_app, refuse, warn
from linkwatch_pipeline.entrypoints.cli.output import complain, one_line, print_json, print_table, say

if TYPE_CHECKING:
    from linkwatch_pipeline.bootstrap import App


@click.command("dead-letters")
@click.option("--redrive", "job_id", metavar="ID", help="Look again at this job's link, as a new job in a retry run.")
@click.option("--all", "everything", is_flag=True, help="The same for every job listed that was not redriven yet.")
@click.option("--discard", "letter_id", metavar="ID", help="Throw this letter out of the queue; its job stays.")
@click.option("--discard-strays", "strays_too", is_flag=True, help="The same for all letters that no redrive can help.")
@values.as_json
@click.pass_context
def dead_letters(
    context: click.Context,
    job_id: str | None,
    everything: bool,
    letter_id: str | None,
    strays_too: bool,
    as_json: bool,
) -> int:
    """List the jobs that were given up in the last 14 days, and letters without one; redrive or discard them."""
    from linkwatch_pipeline.use_cases.queue_letters import queue_letters

    given = [job_id is not None, everything, letter_id is not None, strays_too]
    if sum(given) > 1:
        raise click.UsageError("Give one of --redrive, --all, --discard and --discard-strays.", context)
    with open_app(context, if_unfinished=refuse if any(given) else warn) as app:
        if letter_id is not None:
            return _discard(app, [letter_id], as_json)
        if strays_too:
            strays = queue_letters(app.store, app.shared_queue).strays
            return _discard(app, [stray.letter_id for stray in strays], as_json)
        if job_id is not None:
            return _redrive(app, [job_id], as_json)
        return _redrive(app, _redrivable(app), as_json) if everything else _list(app, as_json)


def _redrivable(app: App) -> list[str]:
    from linkwatch_pipeline.use_cases.damage import Damage
    from linkwatch_pipeline.use_cases.dead_letters import dead_letters
    from linkwatch_pipeline.use_cases.queue_letters import queue_letters

    letters = dead_letters(app.store, now=app.clock.now(), damaged=Damage())
    jobs = [letter.job.job_id for letter in letters if letter.redriven_as is None]
    return jobs + [letter.job_id for letter in queue_letters(app.store, app.work_queue).by_hand]


def _list(app: App, as_json: bool) -> int:
    from linkwatch_pipeline.domain.reasons import Reason
    from linkwatch_pipeline.entrypoints.cli import letter_documents as documents
    from linkwatch_pipeline.use_cases.damage import Damage
    from linkwatch_pipeline.use_cases.dead_letters import dead_letters
    from linkwatch_pipeline.use_cases.queue_letters import queue_letters

    damage = Damage()
    letters = list(dead_letters(app.store, now=app.clock.now(), damaged=damage))
    others = queue_letters(app.store, app.work_queue)
    if as_json:
        print_json(
            [documents.letter_document(letter) for letter in letters]
            + [documents.hand_letter_document(letter) for letter in others.by_hand]
            + [documents.waiting_document(job) for job in others.waiting]
            + [documents.stray_document(stray) for stray in others.strays]
        )
        return exit_code_of(damage)
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
        + [(letter.job_id, None, Reason.DEAD_LETTER.value, None) for letter in others.by_hand],
    )
    if others.waiting:
        say("\nthese wait for the next tick, which lists them as given up; leave them to it:")
        print_table(("JOB", "HOST"), [(job.job_id, job.host) for job in others.waiting])
    if others.strays:
        say("\nno redrive can help these; --discard-strays throws them away:")
        print_table(
            ("LETTER", "WHY", "BEGINS"),
            [(stray.letter_id, stray.problem, stray.beginning or None) for stray in others.strays],
        )
    return exit_code_of(damage)


def _discard(app: App, letter_ids: list[str], as_json: bool) -> int:
    """Throw away and tell; 2 if a letter that was named is not there, or is still needed."""
    from linkwatch_pipeline.use_cases.queue_letters import discard_letters

    done = discard_letters(app.store, app.shared_queue, letter_ids)
    for letter_id in done.missing:
        complain(f"{one_line(letter_id)} is not in the queue of dead letters; 'linkwatch dead-letters' lists them.")
    for letter_id in done.needed:
        complain(
            f"{one_line(letter_id)} is pending: the next tick ends it because of its letter. Without that it would be "
            "sent and fail again. Discard it after the tick."
        )
    is_refused = bool(done.missing or done.needed)
    if as_json and not is_refused:
        print_json({"discarded": done.found})
    elif not as_json:
        for letter_id in done.found:
            say(f"discarded: {letter_id}")
        if not letter_ids:
            say("there is nothing to discard")
    return 2 if is_refused else 0


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
    from linkwatch_pipeline.entrypoints.cli import letter_documents as documents
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
