"""The AWS half, whole, on an emulator: deployed by its own command, started by its own schedule, under its own roles.

    python -m linkwatch_pipeline_tests.cloud.aws_local [--links 60] [--handbook FOLDER] [--keep]      # make aws-local

ministack runs with AUTH=true, so every call of a function is allowed or denied by the role that the templates give it.
The links are those of the 18F handbook, or of another folder; the hosts are a world on loopback.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event

from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline_tests.cloud.aws_account import Account
from linkwatch_pipeline_tests.cloud.aws_play import NotAsPromised, Play, cloud_with_roles, made
from linkwatch_pipeline_tests.cloud.handbook_links import EXCERPT, links_of, some_links
from linkwatch_pipeline_tests.interruptible import exit_code_of
from linkwatch_pipeline_tests.whole_numbers import whole_number


def _keep(play: Play, account: Account) -> None:
    """Say how to type at it, and stay until Ctrl-C."""
    print(account.to_text())
    print("\nAll of it stays up until Ctrl-C here. In another terminal:\n")
    for name, value in play.env.items():
        print(f"export {name}={shlex.quote(value)}")
    print("linkwatch links", flush=True)
    with suppress(KeyboardInterrupt):
        Event().wait()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m linkwatch_pipeline_tests.cloud.aws_local")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--links",
        type=whole_number(1, 10_000),
        help="at most so many links of an excerpt of the 18F handbook, few of a host",
    )
    which.add_argument(
        "--handbook", type=Path, default=EXCERPT, help="all links of this folder; without it, of that excerpt"
    )
    parser.add_argument("--keep", action="store_true", help="leave it up at the end, to type at, until Ctrl-C")
    given = parser.parse_args(arguments)

    def work() -> int:
        try:
            links = links_of(given.handbook) if given.links is None else some_links(given.links)
        except InvalidInput as refused:
            parser.error(f"argument --handbook: {refused.problem}. {refused.mend}")
        if not links:
            parser.error(f"argument --handbook: no link was found in {given.handbook}")
        return _play_and_tell(links, given.handbook if given.links is None else None, keep=given.keep)

    return exit_code_of(work, if_interrupted="the emulator and what it started have ended")


def _play_and_tell(links: list[str], handbook: Path | None, *, keep: bool) -> int:
    with tempfile.TemporaryDirectory() as folder, cloud_with_roles(made(Path(folder) / "cloud")) as cloud:
        try:
            play = Play(cloud, Path(folder), links, handbook, hurried=handbook is None)
            account = play.run(partial(_keep, play) if keep else lambda _: None)
        except NotAsPromised as problem:
            print(problem, file=sys.stderr)
            return 1
    if not keep:
        print(account.to_text())
        print("(make aws-local ARGS=--keep leaves it up at the end, to type at)")
    return 1 if account.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
