"""A world as a process: python -m linkwatch_pipeline_tests.world --spec FILE --log FILE [--week-file FILE]

SPEC is `{"hosts": {name: site}}` (see `scripts.site_from_json`). Prints its address map as one line of JSON, appends
one line of JSON per request to LOG, reads the week from WEEK-FILE at every request, and ends when its standard input
does: with whoever started it, and with nobody else.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path

from linkwatch_pipeline_tests.world.log import Hit
from linkwatch_pipeline_tests.world.scripts import site_from_json
from linkwatch_pipeline_tests.world.world import World


class _FollowingWorld(World):
    """A world whose week stands in a file."""

    week_file: Path | None = None

    @property
    def week(self) -> int:
        return int(self.week_file.read_text()) if self.week_file is not None and self.week_file.exists() else 0

    @week.setter
    def week(self, week: int) -> None:
        if self.week_file is not None:
            self.week_file.write_text(str(week))


async def _live(spec: Path, log: Path, week_file: Path | None) -> None:
    sites = {host: site_from_json(site) for host, site in json.loads(spec.read_text())["hosts"].items()}
    with log.open("a", encoding="utf-8", buffering=1) as lines:

        def tell(hit: Hit) -> None:
            lines.write(hit.to_json() + "\n")

        world = _FollowingWorld(sites, tell=tell)
        world.week_file = week_file
        async with world:
            print(world.map.to_json(), flush=True)
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m linkwatch_pipeline_tests.world")
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--week-file", type=Path)
    arguments = parser.parse_args()
    asyncio.run(_live(arguments.spec, arguments.log, arguments.week_file))


if __name__ == "__main__":
    main()
