"""`linkwatch demo`: four weeks of one link on a real site on loopback, through the Dagster assets, to two mails."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwatch_pipeline.entrypoints.cli.interrupts import call_interruptibly
from linkwatch_pipeline.entrypoints.cli.output import print_json, print_table, say
from linkwatch_pipeline.entrypoints.cli.values import as_json

if TYPE_CHECKING:
    from linkwatch_pipeline.adapters.event_loop import CoroutineRunner
    from linkwatch_pipeline.adapters.fixture_site import FixtureSite
    from linkwatch_pipeline.bootstrap import App

DEMO_HOME = ".linkwatch-demo"
FIXTURE_IP, FIXTURE_PORT = "127.0.0.1", 8765
STORY = (("2026-09-07", 200), ("2026-09-14", 404), ("2026-09-21", 404), ("2026-09-28", 200))
LINK_ID, OWNER, ADDRESS, MARKER = "guide", "docs-team", "docs-team@example.com", "guide-v1"


@click.command()
@click.option("--deliver/--no-deliver", default=True, help="Whether to send the two notices, as mail files.")
@as_json
def demo(deliver: bool, as_json: bool) -> None:
    """Play four weeks: a page is there, gone, still gone, back. Again, nothing changes."""
    from linkwatch_pipeline.adapters.event_loop import CoroutineRunner

    coroutines = CoroutineRunner()
    call_interruptibly(lambda: _demo(coroutines, deliver=deliver, as_json=as_json), stop=coroutines.stop)


def _demo(coroutines: CoroutineRunner, *, deliver: bool, as_json: bool) -> None:
    with _open_demo_home(Path(DEMO_HOME)) as opened:
        app = opened.stopped_by(coroutines)
        _play(app, quiet=as_json)
        pending = sum(not notice.status.is_settled for notice in app.store.notices())
        if not as_json:
            _show_weeks(app)
            say(f"\n{pending} notices pending" if pending else "\nno notice pending")
        if deliver and pending:
            report = app.in_week(_monday(STORY[-1][0])).deliver()
            if not as_json:
                say(f"{report.sent} notices sent, as mail files")
        if as_json:
            print_json(_summary(app))
        else:
            _show_what_to_open(app)


@contextmanager
def _open_demo_home(folder: Path) -> Iterator[App]:
    from linkwatch_pipeline.adapters.home import FixtureMark, find_home
    from linkwatch_pipeline.bootstrap import build_app, make_home

    if not find_home(folder).exists:
        mark = FixtureMark(pairs=((FIXTURE_IP, _free_port()),), story=True)
        make_home(folder, env=os.environ, fixture=mark)
    with build_app(folder, env=os.environ) as app:
        yield app


def _play(app: App, *, quiet: bool) -> None:
    from linkwatch_pipeline.entrypoints.cli.run import run_week

    missing = [(week, status) for week, status in STORY if not _is_over(app, week)]
    with _site(app).running() if missing else nullcontext() as site:
        if site is not None:
            _register(app, f"{site.url}guide")
        for week, status in missing:
            if site is not None:
                site.set(status=status)
            if not quiet:
                click.echo(f"week {week}: the page answers {status} ...", err=True)
            run_week(app, _monday(week))


def _is_over(app: App, week: str) -> bool:
    from linkwatch_pipeline.domain.runs import weekly_run_id

    run = app.store.get_run(weekly_run_id(_monday(week)))
    return run is not None and run.state.is_over


def _site(app: App) -> FixtureSite:
    from linkwatch_pipeline.adapters.fixture_site import FixtureSite
    from linkwatch_pipeline.domain.errors import ConfigurationError

    if app.home.fixture is None:
        raise ConfigurationError(f"{app.home.folder} is no fixture home; move it away, and the demo makes its own.")
    ip, port = app.home.fixture.pairs[0]
    return FixtureSite(ip, port)


def _register(app: App, url: str) -> None:
    from linkwatch_pipeline.use_cases.register import register_link

    register_link(
        app.store,
        link_id=LINK_ID,
        url=url,
        owner=OWNER,
        notify=ADDRESS,
        marker=MARKER,
        confirm=None,
        now=_monday(STORY[0][0]) - timedelta(hours=1),
    )


def _show_weeks(app: App) -> None:
    rows = []
    changes = {transition.sequence: transition for transition in app.store.transitions(link_id=LINK_ID)}
    for (week, _), seen in zip(STORY, app.store.observations(link_id=LINK_ID), strict=False):
        change = changes.get(seen.sequence)
        told = f"{change.from_state.value} -> {change.to_state.value}, notice {change.id}" if change else ""
        rows.append((week, seen.sequence, seen.status, seen.outcome.value, told))
    print_table(["week", "sequence", "status", "outcome", "change worth telling"], rows)
    link = app.store.get_link(LINK_ID)
    if link is not None:
        say(f"\n{LINK_ID} is {link.state.value} (version {link.version})")


def _show_what_to_open(app: App) -> None:
    for mail in sorted(app.home.mail.glob("*.eml")):
        say(f"mail       {mail}")
    say(f"database   {app.home.database}")
    say(f"warehouse  {app.home.warehouse}")
    say("")
    inspect = f"linkwatch --home {DEMO_HOME} inspect {LINK_ID}"
    commands = {inspect: "what is recorded", "make dev": "the same in the Dagster UI"}
    width = max(map(len, commands))
    for command, shows in commands.items():
        say(f"{command:<{width}}   {shows}")


def _summary(app: App) -> dict[str, object]:
    link = app.store.get_link(LINK_ID)
    return {
        "home": str(app.home.folder),
        "observations": sum(1 for _ in app.store.observations()),
        "transitions": sum(1 for _ in app.store.transitions()),
        "notices": {notice.transition_id: notice.status.value for notice in app.store.notices()},
        "state": link.state.value if link is not None else None,
        "mails": [str(mail) for mail in sorted(app.home.mail.glob("*.eml"))],
    }


def _monday(week: str) -> datetime:
    from linkwatch_pipeline.domain.timestamps import parse_week

    return parse_week(week)


def _free_port() -> int:
    """8765, or another one if somebody serves there."""
    for port in (FIXTURE_PORT, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((FIXTURE_IP, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no port is free on 127.0.0.1")
