"""`linkwatch`: each command parses, calls one use case, prints. What a command needs is imported when it runs.

Exit codes: 0 fine, 1 the thing looked at is not fine, 2 refused (usage, configuration, conflicting content, a store
that cannot serve), 130 interrupted. Errors go to stderr as one sentence.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

from linkwatch_pipeline.domain.errors import AlreadyRunning, LinkwatchError
from linkwatch_pipeline.entrypoints.cli import (
    check,
    dead_letters,
    deliver,
    demo,
    dev,
    fixture,
    generate_history,
    health,
    history,
    import_file,
    inspect,
    links,
    mail_events,
    mutes,
    owners,
    record,
    report,
    run,
    scan,
    simulate,
    status,
    submit,
    suspect,
    worker,
)
from linkwatch_pipeline.entrypoints.cli import init as init_command
from linkwatch_pipeline.entrypoints.cli.output import complain

EXIT_NOT_FINE = 1
EXIT_REFUSED = 2
EXIT_INTERRUPTED = 130
# What becomes of KeyboardInterrupt in the middle of a query: DuckDB looks for signals itself.
DUCKDB_INTERRUPTED = "Query interrupted"
EXIT_BROKEN_PIPE = 141


class _InOrder(click.Group):
    """Lists its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def _print_version(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted:
        from linkwatch_pipeline.bootstrap import version

        click.echo(f"linkwatch {version()}")
        context.exit()


@click.group(cls=_InOrder, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--home",
    metavar="DIR",
    envvar="LINKWATCH_HOME",
    show_envvar=True,
    help="The folder that holds everything, made on first use; ./.linkwatch without it.",
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show it.")
@click.pass_context
def linkwatch(context: click.Context, home: str | None) -> None:
    """Watch the links of a handbook, politely, and tell each owner once."""
    if home == "":
        raise click.BadParameter("Name a folder.", param_hint="--home")
    context.obj = home


for _command in (  # in the order in which one uses them, as `--help` lists them
    demo.demo,
    init_command.init,
    owners.owner,
    links.register,
    links.update,
    links.retire,
    links.links,
    import_file.import_file,
    submit.submit,
    scan.scan,
    run.run,
    run.resume,
    check.check,
    record.record,
    inspect.inspect,
    inspect.outbox,
    deliver.deliver,
    dead_letters.dead_letters,
    dead_letters.enqueue,
    suspect.release_notices,
    suspect.discard_notices,
    mutes.ack,
    mutes.mute,
    mutes.unmute,
    mutes.mutes,
    mail_events.mail_events,
    report.report,
    health.health,
    status.status,
    simulate.simulate,
    worker.worker,
    history.export,
    history.import_history,
    generate_history.generate_history,
    dev.dev,
    fixture.fixture,
):
    linkwatch.add_command(_command)


def main(args: Sequence[str] | None = None) -> int:
    """Run one command line (the process's own if None); the exit code."""
    _tell_causes_of_warnings()
    try:
        code = _run(list(sys.argv[1:] if args is None else args))
        if sys.stdout is not None:  # closed by whoever started us
            sys.stdout.flush()
    except LinkwatchError as error:
        complain(str(error))
        return EXIT_NOT_FINE if isinstance(error, AlreadyRunning) else EXIT_REFUSED
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return EXIT_REFUSED
    except click.ClickException as error:
        complain(_usage_sentence(error))
        return EXIT_REFUSED
    except (KeyboardInterrupt, click.Abort):
        return _interrupted()
    except RuntimeError as error:
        if not _was_interrupted(error):
            raise
        return _interrupted()
    except UnicodeEncodeError as error:
        if not any("\udc80" <= character <= "\udcff" for character in error.object):
            raise
        complain(f"{error.object!a} is not text in UTF-8; write it so.")
        return EXIT_REFUSED
    except OSError as error:
        _let_go_of_stdout()
        if error.errno == errno.EPIPE:
            return EXIT_BROKEN_PIPE
        complain(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}.")
        return EXIT_REFUSED
    return code


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C came in the middle of what raises something of its own then: a query, a class that is defined."""
    if error is None:
        return False
    return isinstance(error, KeyboardInterrupt) or str(error) == DUCKDB_INTERRUPTED or _was_interrupted(error.__cause__)


def _interrupted() -> int:
    complain("interrupted; the same command goes on where it stopped.")
    return EXIT_INTERRUPTED


def _run(args: list[str]) -> int:
    # Not `click.Command.main`: it prints errors in its own words and turns a closed pipe into a plain failure.
    try:
        with linkwatch.make_context("linkwatch", args) as context:
            code = linkwatch.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    return code if isinstance(code, int) else 0


class _WithCause(logging.Formatter):
    """A warning's words, and what is the matter, which the program's own logs carry beside them."""

    def format(self, record: logging.LogRecord) -> str:
        error = getattr(record, "error", None)
        return super().format(record) + (f": {error}" if error else "")


def _tell_causes_of_warnings() -> None:
    """Where nobody asked for logs, Python prints warnings on stderr, without anything that is beside their words."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_WithCause())


def _usage_sentence(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return error.format_message() + (f" Try '{context.command_path} --help'." if context is not None else "")


def _let_go_of_stdout() -> None:
    """Whoever read our output is gone, or its disk is full: the interpreter must not try to flush it again."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
