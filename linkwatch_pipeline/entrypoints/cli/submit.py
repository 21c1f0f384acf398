"""`linkwatch submit`: take URLs from people who are not operators."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwatch_pipeline.entrypoints.cli import values
from linkwatch_pipeline.entrypoints.cli.opening import home_folder, open_app
from linkwatch_pipeline.entrypoints.cli.output import note, one_line, say

if TYPE_CHECKING:
    from linkwatch_pipeline.use_cases.submit import Submission

KINDS = (".csv", ".json")
EXIT_NOT_FINE = 1


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--owner", type=values.team, help="Whose the URLs are that name no owner.")
@click.pass_context
def submit(context: click.Context, file: Path, owner: str | None) -> int:
    """Watch URLs that other people hand in.

    FILE has rows with url and owner, a team that exists (.csv, .json), or one URL a line (any other ending). What
    becomes of each is told. Those that can be accepted are watched even if others are refused; the exit code is 1 then.
    """
    from linkwatch_pipeline.adapters.tables.reader import read_table
    from linkwatch_pipeline.bootstrap import scanning_policy
    from linkwatch_pipeline.use_cases.submit import Verdict, submit_urls

    table = read_table(file, KINDS, otherwise=".txt")
    judge_url = scanning_policy(home_folder(context)).judge_url
    with open_app(context) as app:
        submissions = submit_urls(app.store, table, owner=owner, judge_url=judge_url, now=app.clock.now())
    for submission in submissions:
        say(one_line(f"{file}:{submission.line}: {_told(submission)}"))
    counts = {verdict: sum(s.verdict is verdict for s in submissions) for verdict in Verdict}
    note(", ".join(f"{count} {verdict.value}" for verdict, count in counts.items()))
    return EXIT_NOT_FINE if counts[Verdict.REFUSED] else 0


def _told(submission: Submission) -> str:
    said = f"{submission.verdict.value}: {submission.url}" if submission.url else submission.verdict.value
    if submission.link is None:
        return f"{said}: {submission.reason}"
    owner = f", owner {submission.link.owner}" if submission.link.owner is not None else ""
    return f"{said} is link {submission.link.id}{owner}"
