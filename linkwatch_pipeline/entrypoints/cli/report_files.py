"""What `linkwatch report` writes: pages for people, formats for pipelines, patch files for the handbook."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwatch_pipeline.entrypoints.cli.output import note

if TYPE_CHECKING:
    from linkwatch_pipeline.bootstrap import App
    from linkwatch_pipeline.domain.report import CoverageReport

NOT_PATCHED = "not-patched.csv"


def check_paths(
    form: str | None,
    *,
    out: Path | None,
    html: Path | None,
    overview: Path | None,
    patches: Path | None,
    handbook: Path | None,
) -> None:
    """Refuse flags that do not belong together, before a home is opened. Raises UsageError, InvalidInput."""
    from linkwatch_pipeline.domain.errors import InvalidInput

    if out is not None and form is None:
        raise click.UsageError("--out needs --format: it is the file for what that prints.")
    if (patches is None) != (handbook is None):
        raise click.UsageError("--patches DIR and --handbook PATH belong together.")
    if handbook is not None and not handbook.is_dir():
        raise InvalidInput("--handbook", f"there is no folder {str(handbook)!r}", "Name the folder that was scanned.")
    if patches is not None and patches.is_dir() and any(patches.iterdir()):
        mend = "Name a new or an empty folder, so that no patch of an earlier week stays among them."
        raise InvalidInput("--patches", f"{str(patches)!r} is not empty", mend)
    for field, file in (("--out", out), ("--html", html)):
        if file is not None and not file.absolute().parent.is_dir():
            raise InvalidInput(field, f"there is no folder {str(file.absolute().parent)!r}", "Make it first.")


def write_files(
    app: App,
    found: CoverageReport,
    form: str | None,
    *,
    out: Path | None,
    html: Path | None,
    overview: Path | None,
    patches: Path | None,
    handbook: Path | None,
) -> None:
    """Write what was asked for, each file whole; what was written is said on stderr. `found` has to be whole."""
    from linkwatch_pipeline.adapters.report_formats.html import html_report, overview_pages
    from linkwatch_pipeline.adapters.report_formats.writing import write_whole

    if html is not None:
        write_whole(html, [html_report(found)])
        note(f"wrote {html}")
    if overview is not None:
        owners = [owner.team for owner in app.store.owners()]
        for name, page in overview_pages(found, owners):
            write_whole(overview / name, [page])
        note(f"wrote {overview / 'index.html'} and a page for each owner")
    if patches is not None and handbook is not None:
        _write_patches(found, patches, handbook)
    if form is not None:
        pieces = _formatted(app, found, form)
        if out is None:
            for piece in pieces:
                click.echo(piece, nl=False)
        else:
            write_whole(out, pieces)
            note(f"wrote {out}")


def _formatted(app: App, found: CoverageReport, form: str) -> Iterable[str]:
    """The report in a format, in pieces."""
    if form == "csv":
        from linkwatch_pipeline.adapters.report_formats.csv_table import csv_report

        return csv_report(found)
    if form == "markdown":
        from linkwatch_pipeline.adapters.report_formats.markdown import markdown_report

        return markdown_report(found)
    if form == "junit":
        from linkwatch_pipeline.adapters.report_formats.junit import junit_report

        return junit_report(found, app.reports.link_ends(found.this_week.week))
    return [json.dumps(_document(found, form), indent=2), "\n"]


def _document(found: CoverageReport, form: str) -> object:
    if form == "sarif":
        from linkwatch_pipeline.adapters.report_formats.sarif import sarif_report
        from linkwatch_pipeline.bootstrap import version

        return sarif_report(found, version=version())
    from linkwatch_pipeline.entrypoints.cli.report_document import report_document

    return report_document(found)


def _write_patches(found: CoverageReport, folder: Path, handbook: Path) -> None:
    from linkwatch_pipeline.adapters.report_formats.patches import make_patches, unpatched_table
    from linkwatch_pipeline.adapters.report_formats.writing import write_whole

    made = make_patches(found.moved_for_good.rows, found.links, handbook)
    for file, diff in made.diffs.items():
        write_whole(folder / f"{file}.patch", [diff])
    write_whole(folder / NOT_PATCHED, unpatched_table(made.unpatched))
    note(
        f"patched {len(made.patched)} places in {len(made.diffs)} files; "
        f"{len(made.unpatched)} not, for the reasons in {folder / NOT_PATCHED}"
    )
