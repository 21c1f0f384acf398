"""`linkwatch export` and `linkwatch import-history`: everything from one store into another."""

from __future__ import annotations

from pathlib import Path

import click

from linkwatch_pipeline.entrypoints.cli.opening import open_app
from linkwatch_pipeline.entrypoints.cli.output import say


@click.command("export")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.pass_context
def export(context: click.Context, file: Path) -> int:
    """Write everything that the store holds into a new FILE, for import-history.

    Let nothing run meanwhile. The warehouse and mails are files of the home already: copy those.
    """
    from linkwatch_pipeline.adapters.store.history_file import write_history
    from linkwatch_pipeline.bootstrap import new_worker
    from linkwatch_pipeline.use_cases.move_history import everything

    with open_app(context) as app:
        count = write_history(file, everything(app.store), source=new_worker("export"))
    say(f"exported {count} records to {file}")
    return 0


@click.command("import-history")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.pass_context
def import_history(context: click.Context, file: Path) -> int:
    """Put everything of a FILE that export wrote into this home's store, which has to be empty.

    A file that is cut or was changed is refused before anything is written. Interrupted, the same command goes on.
    """
    from linkwatch_pipeline.adapters.store.history_file import check_history, read_history

    source = check_history(file)
    with open_app(context, if_unfinished=None) as app:
        count = app.store.restore(read_history(file), source=source)
    say(f"imported {count} records from {file}")
    return 0
