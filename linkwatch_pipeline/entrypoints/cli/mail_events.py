"""`linkwatch mail-events`: bring what a mail provider told to the notices."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwatch_pipeline.entrypoints.cli import values
from linkwatch_pipeline.entrypoints.cli.opening import open_app
from linkwatch_pipeline.entrypoints.cli.output import complain, one_line, print_json, say

if TYPE_CHECKING:
    from linkwatch_pipeline.domain.mail_events import MailEvent
    from linkwatch_pipeline.use_cases.reconcile import ReconcileReport

_MAX_BYTES = 20_000_000  # of one file: some ten thousand events


@dataclass
class _Read:
    """What stood in the files. A file with anything unreadable in it is left out whole, and named."""

    events: list[MailEvent] = field(default_factory=list)
    ignored: int = 0
    unreadable: list[tuple[str, str]] = field(default_factory=list)


@click.command("mail-events")
@click.argument("path", metavar="FILE|DIR", type=click.Path(exists=True, path_type=Path))
@values.as_json
@click.pass_context
def mail_events(context: click.Context, path: Path, as_json: bool) -> int:
    """Bring delivery, bounce and complaint events to the notices. A folder means its *.json files, by name."""
    from linkwatch_pipeline.use_cases.reconcile import reconcile_mail_events

    read = _read(path)
    with open_app(context) as app:
        report = reconcile_mail_events(app.store, read.events)
    print_json(_document(read, report)) if as_json else _tell(read, report)
    for name, problem in read.unreadable:
        complain(f"{name}: {problem}")
    return 1 if read.unreadable or report.bad_news else 0


def _read(path: Path) -> _Read:
    from linkwatch_pipeline.adapters.named_file import read_any_text, read_regular_text
    from linkwatch_pipeline.adapters.notify.ses_events import read_events
    from linkwatch_pipeline.domain.errors import InvalidInput

    read = _Read()
    is_folder = path.is_dir()
    text_of = read_regular_text if is_folder else read_any_text
    for file in sorted(path.glob("*.json")) if is_folder else [path]:
        try:
            found = read_events(text_of(file, most=_MAX_BYTES))
        except InvalidInput as exc:
            read.unreadable.append((file.name, str(exc)))
        else:
            read.events += [event for event in found if event is not None]
            read.ignored += found.count(None)
    return read


def _document(read: _Read, report: ReconcileReport) -> dict[str, object]:
    return {
        "changed": report.changed,
        "unchanged": report.unchanged,
        "ignored": read.ignored,
        "unmatched": list(report.unmatched),
        "bad_news": [
            {
                "transition_id": news.transition_id,
                "event": news.kind.value,
                "teams": list(news.teams),
                "detail": news.detail,
            }
            for news in report.bad_news
        ],
        "unreadable": [{"file": name, "problem": problem} for name, problem in read.unreadable],
    }


def _tell(read: _Read, report: ReconcileReport) -> None:
    say(f"changed {report.changed}, nothing new {report.unchanged}, ignored {read.ignored}")
    for news in report.bad_news:
        whose = ", ".join(news.teams) or "an address that is no team's now"
        say(one_line(f"{news.kind.value}: {news.transition_id}, {whose}: {news.detail}"))
    for mail_id in report.unmatched:
        say(one_line(f"no notice for mail {mail_id}"))
