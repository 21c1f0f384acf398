"""How commands open their home."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwatch_pipeline.domain.errors import ImportUnfinished
from linkwatch_pipeline.entrypoints.cli.output import note

if TYPE_CHECKING:
    from linkwatch_pipeline.adapters.home import Home
    from linkwatch_pipeline.bootstrap import App
    from linkwatch_pipeline.ports import Progress
    from linkwatch_pipeline.use_cases.damage import Damage

LARGE = 2_000  # links


def home_folder(context: click.Context) -> Path:
    """The folder that `--home` or LINKWATCH_HOME names."""
    from linkwatch_pipeline.bootstrap import DEFAULT_HOME

    return Path(context.find_root().obj or DEFAULT_HOME)


def refuse(unfinished: ImportUnfinished) -> None:
    """What a command does that writes, or takes what is there for the whole."""
    raise unfinished


def warn(unfinished: ImportUnfinished) -> None:
    """What a command does that only shows what is there."""
    note(f"warning: {unfinished}")


@contextmanager
def open_app(
    context: click.Context,
    *,
    flags: Mapping[str, object] | None = None,
    progress: Progress | None = None,
    if_unfinished: Callable[[ImportUnfinished], None] | None = refuse,
) -> Iterator[App]:
    """The wired parts of the home, closed afterwards.

    Args:
        flags, progress: as in `bootstrap.build_app`.
        if_unfinished: told that a part of an imported history is all that is there; None for a command that looks
            itself, or needs no store.
    """
    from linkwatch_pipeline.bootstrap import build_app

    with build_app(home_folder(context), env=os.environ, flags=flags, progress=progress) as app:
        announce(app.home)
        if if_unfinished is not None:
            look_for_half_an_import(app, if_unfinished)
        yield app


def look_for_half_an_import(app: App, if_unfinished: Callable[[ImportUnfinished], None] = refuse) -> None:
    """Tell `if_unfinished` that a part of an imported history is all that is there, if it is."""
    # An SQLite file takes a history whole or not at all.
    if app.on_aws and app.store.is_import_unfinished():
        if_unfinished(ImportUnfinished())


def exit_code_of(damage: Damage) -> int:
    """What a command ends with that showed what it could read; the log named the rest."""
    return 1 if damage.records else 0


def announce_writing(app: App, links: int) -> None:
    """Say on stderr what takes so long, where a table takes seconds for so many links."""
    if app.on_aws and links >= LARGE:
        note(f"comparing {links} links with the table, then writing all or none: some 2 s for each thousand")


def announce(home: Home) -> None:
    """Say on stderr that this is a fixture home, so that nobody takes what it shows for the real world."""
    if home.fixture is not None:
        note(f"fixture home: only {home.fixture} is reachable")
