"""`linkwatch scan`: take the links out of a handbook and watch them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwatch_pipeline.entrypoints.cli import values
from linkwatch_pipeline.entrypoints.cli.opening import announce_writing, home_folder, open_app
from linkwatch_pipeline.entrypoints.cli.output import note, one_line, print_json, print_table, say

if TYPE_CHECKING:
    from linkwatch_pipeline.domain.errors import DamagedRecord
    from linkwatch_pipeline.domain.handbook import FoundUrl, ScanResult
    from linkwatch_pipeline.domain.owner_map import OwnerMap
    from linkwatch_pipeline.use_cases.scan import ScanSummary

EXIT_NOT_FINE = 1


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--owner", type=values.team, help="The team that is told.")
@click.option("--notify", metavar="ADDR", type=values.address, help="The address of a new owner.")
@click.option(
    "--owners", "owners_file", metavar="FILE", type=click.Path(path_type=Path), help="Path patterns and teams."
)
@click.option("--include", metavar="RE", help="Only files whose path under PATH this is found in.")
@click.option("--exclude", metavar="RE", help="No files whose path under PATH this is found in.")
@click.option("--base-url", metavar="U", help="Where PATH is published: relative links are watched too.")
@click.option(
    "--prune", is_flag=True, help="Retire the owner's links that this scan does not find: name all its PATHs."
)
@click.option("--dry-run", is_flag=True, help="Only show what is found.")
@values.as_json
@click.pass_context
def scan(
    context: click.Context,
    paths: tuple[Path, ...],
    owner: str | None,
    notify: str | None,
    owners_file: Path | None,
    include: str | None,
    exclude: str | None,
    base_url: str | None,
    prune: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Take the links out of files and folders, and watch them."""
    from linkwatch_pipeline.adapters.handbook.reader import HandbookReader
    from linkwatch_pipeline.bootstrap import scanning_policy
    from linkwatch_pipeline.use_cases.scan import register_scan, scan_paths

    if owner is not None and owners_file is not None:
        raise click.UsageError("--owner and --owners exclude each other.", context)
    if owner is None and owners_file is None and not dry_run:
        raise click.UsageError("Say whose links these are: --owner TEAM, or --owners FILE.", context)
    if notify is not None and owner is None:
        raise click.UsageError("--notify is the address of --owner.", context)
    owners = _owners(owner, owners_file)
    result = scan_paths(
        paths,
        include=include,
        exclude=exclude,
        base_url=base_url,
        reader=HandbookReader(),
        judge_address=scanning_policy(home_folder(context)).judge_address,
    )
    damaged: tuple[DamagedRecord, ...] = ()
    if owners is not None and not dry_run:
        with open_app(context) as app:
            announce_writing(app, len(result.found))
            summary = register_scan(app.store, result, owners=owners, notify=notify, now=app.clock.now(), prune=prune)
        damaged = summary.damaged
        if not as_json:
            _tell_done(summary)
    if as_json:
        print_json([found_document(found) for found in result.found])
    elif dry_run:
        print_table(("URL", "PLACES"), ((found.url, _places(found)) for found in result.found))
    _tell_rest(result)
    for error in damaged:
        note(f"left as it is: {error}")
    return EXIT_NOT_FINE if result.problems or damaged else 0


def _owners(owner: str | None, owners_file: Path | None) -> OwnerMap | None:
    from linkwatch_pipeline.adapters.named_file import read_any_text
    from linkwatch_pipeline.domain.owner_map import everything_of, parse_owner_map

    if owner is not None:
        return everything_of(owner)
    if owners_file is None:
        return None
    return parse_owner_map(read_any_text(owners_file))


def found_document(found: FoundUrl) -> dict[str, object]:
    """A URL with its places, as ARCHITECTURE 6 says."""
    return {"url": found.url, "places": [{"file": place.file, "line": place.line} for place in found.places]}


def _places(found: FoundUrl) -> str:
    first = f"{found.places[0].file}:{found.places[0].line}"
    return first if len(found.places) == 1 else f"{first} and {len(found.places) - 1} more"


def _tell_done(summary: ScanSummary) -> None:
    told = ", ".join(f"{len(ids)} {change.value}" for change, ids in summary.ids.items())
    say(told or "no links")
    if summary.files_gone:
        first, more = one_line(summary.files_gone[0]), len(summary.files_gone) - 1
        named = f"{first} and {more} more files" if more else first
        note(
            f"links were retired that stood in {named}, not read by this scan. Deleted? Then all is well. If that is "
            "another handbook of the same team, scan both in one command: that revives the links"
        )


def _tell_rest(result: ScanResult) -> None:
    """What is not watched, and why, on stderr: line by line, and the counts."""
    for skipped in result.skipped:
        text = " ".join(skipped.text.split())
        note(one_line(f"{skipped.file}:{skipped.line}: skipped {text}: {skipped.reason}"))
    for passed in result.passed:
        note(f"{one_line(passed.file)}: passed over: {passed.problem}")
    for problem in result.problems:
        note(one_line(f"{problem.file}: {problem.problem}"))
    places = sum(len(found.places) for found in result.found)
    note(f"{len(result.found)} URLs in {places} places of {len(result.files)} files; {len(result.skipped)} skipped")
    if result.asides:
        counts = ", ".join(f"{count} {aside.value}" for aside, count in sorted(result.asides.items()))
        note(f"not checked: {counts}")
