"""`linkwatch import`: register many links from a file."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwatch_pipeline.entrypoints.cli.opening import announce_writing, open_app
from linkwatch_pipeline.entrypoints.cli.output import complain, note, one_line, say
from linkwatch_pipeline.entrypoints.cli.unreachable import warn_of_unreachable

if TYPE_CHECKING:
    from linkwatch_pipeline.domain.tables import RowProblem

KINDS = (".csv", ".json", ".yaml", ".yml")
EXIT_REFUSED = 2
MOST_TOLD = 20  # of one field, so that what is wrong elsewhere is still read
_LINES_NAMED = 3


@click.command("import")
@click.argument("file", metavar="FILE.{csv,json,yaml}", type=click.Path(path_type=Path))
@click.pass_context
def import_file(context: click.Context, file: Path) -> int:
    """Register the links of a file: all of them, or none.

    Each row has link_id (or id), url and owner, and may have notify, expect, confirm, and file and line, the link's
    place. What is wrong is named by row, the same fault of many rows once, and nothing is written then. The same
    file again changes nothing.
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
        for told in _told(file, done.problems):
            note(one_line(told))
        lines = len({problem.line for problem in done.problems})
        complain(f"{file} has something wrong on {lines} line{'s' if lines > 1 else ''}; nothing was written.")
        return EXIT_REFUSED
    changes = (Change.REGISTERED, Change.REVIVED, Change.UPDATED, Change.UNCHANGED)
    say(", ".join(f"{done.count(change)} {change.value}" for change in changes))
    if done.owners:
        say(f"new owners: {', '.join(done.owners)}")
    return 0


def _told(file: Path, problems: Iterable[RowProblem]) -> Iterator[str]:
    """A line for each fault, with the rows that have it too; then how many of a field are left out."""
    rows: dict[tuple[str, str], list[int]] = defaultdict(list)
    for problem in problems:
        rows[problem.field, problem.problem].append(problem.line)
    told: Counter[str] = Counter()
    for (name, fault), (first, *others) in rows.items():
        told[name] += 1
        if told[name] <= MOST_TOLD:
            yield f"{file}:{first}: {name}: {fault}{_also_on(others)}"
    for name, count in told.items():
        if count > MOST_TOLD:
            yield f"{file}: {name}: and {count - MOST_TOLD} more"


def _also_on(lines: list[int]) -> str:
    if not lines:
        return ""
    named = ", ".join(map(str, lines[:_LINES_NAMED]))
    more = f" and {len(lines) - _LINES_NAMED} more" if len(lines) > _LINES_NAMED else ""
    return f" (also on line{'s' if len(lines) > 1 else ''} {named}{more})"
