"""`linkwatch import`: register many links from a file."""

from __future__ import annotations

from pathlib import Path

import click

from linkwatch_pipeline.entrypoints.cli.opening import announce_writing, open_app
from linkwatch_pipeline.entrypoints.cli.output import complain, note, one_line, say
from linkwatch_pipeline.entrypoints.cli.unreachable import warn_of_unreachable

KINDS = (".csv", ".json", ".yaml", ".yml")
EXIT_REFUSED = 2


@click.command("import")
@click.argument("file", metavar="FILE.{csv,json,yaml}", type=click.Path(path_type=Path))
@click.pass_context
def import_file(context: click.Context, file: Path) -> int:
    """Register the links of a file: all of them, or none.

    Each row has link_id (or id), url and owner, and may have notify, expect, confirm, and file and line, the link's
    place. Every bad row is named, and nothing is written then. The same file again changes nothing.
    """
    from linkwatch_pipeline.adapters.tables.reader import read_table
    from linkwatch_pipeline.use_cases.import_links import import_links
    from linkwatch_pipeline.use_cases.register import Change

    table = read_table(file, KINDS)
    with open_app(context) as app:
        announce_writing(app, len(table.rows))
        done = import_links(app.store, table, now=app.clock.now())
        warn_of_unreachable(context, done.written)
    if done.problems:
        for problem in done.problems:
            note(one_line(f"{file}:{problem.line}: {problem.field}: {problem.problem}"))
        lines = len({problem.line for problem in done.problems})
        complain(f"{file} has something wrong on {lines} line{'s' if lines > 1 else ''}; nothing was written.")
        return EXIT_REFUSED
    changes = (Change.REGISTERED, Change.REVIVED, Change.UPDATED, Change.UNCHANGED)
    say(", ".join(f"{done.count(change)} {change.value}" for change in changes))
    if done.owners:
        say(f"new owners: {', '.join(done.owners)}")
    return 0
