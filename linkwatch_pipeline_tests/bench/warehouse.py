"""The warehouse: how long the report's sections take over a long history, in how much memory, and how small it is.

`python -m linkwatch_pipeline_tests.bench.warehouse HOME` measures a home that `linkwatch generate-history` made; each
section in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from linkwatch_pipeline.adapters.warehouse.files import small_reader
from linkwatch_pipeline.adapters.warehouse.parquet import ParquetWarehouse
from linkwatch_pipeline.bootstrap import App, build_app
from linkwatch_pipeline.domain.findings import AVAILABILITY_WEEKS, CERTIFICATE_ENDS_WITHIN, ChangeKind, Grouping
from linkwatch_pipeline.use_cases.export_week import export_week
from linkwatch_pipeline_tests.bench.result import Result
from linkwatch_pipeline_tests.histories import made_home

LINKS, WEEKS = 120_000, 50
EXPORTED = 6_000
MOST = 1000
ROUNDS = 2

Section = Callable[[App, datetime], object]


def _groups(by: Grouping) -> Section:
    return lambda app, week: app.reports.groups(week, by=by, most=MOST)


def _changes(kind: ChangeKind) -> Section:
    return lambda app, week: app.reports.changes(week, kind=kind, most=MOST)


# What `last_looks` gives, by taking away the few that were looked at again: only throttled ones ever are.
_FROM_LOOKS = """
WITH superseded AS (
    SELECT looks.run_week, looks.outcome, -count(*) AS links
    FROM looks
    SEMI JOIN later_looks AS later
        ON later.page = looks.page AND later.run_week = looks.run_week AND later.sequence > looks.sequence
    WHERE looks.outcome = 'throttled'
    GROUP BY ALL
),
counted AS (SELECT run_id, outcome, count(*) AS links FROM looks GROUP BY ALL)
SELECT run_week, outcome, sum(links)
FROM (SELECT left(run_id, 10) AS run_week, outcome, links FROM counted UNION ALL FROM superseded)
GROUP BY ALL
ORDER BY ALL
"""
SECTIONS: dict[str, Section] = {
    **{f"groups by {by}": _groups(by) for by in Grouping},
    "worst hosts": lambda app, week: app.reports.worst_hosts(week, most=MOST),
    **{kind.value: _changes(kind) for kind in ChangeKind},
    "content changed": lambda app, week: app.reports.content_changed(week, most=MOST),
    "ending certificates": lambda app, week: app.reports.ending_certificates(
        week, within=CERTIFICATE_ENDS_WITHIN, most=MOST
    ),
    "slowest hosts": lambda app, week: app.reports.slowest_hosts(week, most=MOST),
    "repeated uncertainty": lambda app, week: app.reports.repeated_uncertainty(week, at_least=2, most=MOST),
    "moved for good": lambda app, week: app.reports.moved_for_good(week, most=MOST),
    "suspected pages": lambda app, week: app.reports.suspected_pages(week, most=MOST),
    "availability": lambda app, week: app.reports.availability(week, weeks=AVAILABILITY_WEEKS, most=MOST),
    "distribution": lambda app, week: app.reports.outcomes_by_week(through=week),
    "distribution of looks": lambda app, week: _from_looks(app),
    "distribution by pandas": lambda app, week: _by_pandas(app),
}
_TARGETS = {"distribution": 2.0, "distribution of looks": None, "distribution by pandas": None}


def warehouse(folder: Path) -> Iterator[Result]:
    """All numbers, on a history that is made first."""
    made_home(folder / "made", links=LINKS, weeks=WEEKS, in_store=False)[0].close()
    yield from measure(folder / "made")
    yield export_time(folder / "exported")


def measure(home: Path) -> Iterator[Result]:
    """The sections of the newest week of a home, and the size of its warehouse."""
    seconds, peaks = {}, {}
    for name in SECTIONS:
        runs = [_in_a_process(home, name) for _ in range(ROUNDS)]
        seconds[name], peaks[name] = min(run["seconds"] for run in runs), max(run["peak_mb"] for run in runs)
        cpu = min(run["cpu"] for run in runs)
        detail = f"{cpu:.2f} s of CPU, all cores together; at most {peaks[name]:.0f} MB; best of {ROUNDS}"
        yield Result(name, seconds[name], "s", _TARGETS.get(name, 5.0), detail)
    ours = max(peak for name, peak in peaks.items() if "pandas" not in name)
    yield Result("the most memory that a section took", ours, "MB", 2_000, "of its whole process")
    ratio = seconds["distribution by pandas"] / seconds["distribution of looks"]
    yield Result("pandas over DuckDB, the same distribution of the same files", ratio, "", None, "times as long")
    yield size(home)


def size(home: Path) -> Result:
    """Bytes on disk for each observation, its share of the pages included, without the content hash."""
    folder = home / "warehouse"
    files = [str(path) for path in (folder / "observations").glob("*.parquet")]
    with small_reader() as reader:
        ((rows,),) = reader.execute("SELECT sum(num_rows) FROM parquet_file_metadata(?)", [files]).fetchall()
        hashes = "SELECT sum(total_compressed_size) FROM parquet_metadata(?) WHERE path_in_schema = 'content_hash'"
        ((hashed,),) = reader.execute(hashes, [files]).fetchall()
    looks = sum(path.stat().st_size for path in [*map(Path, files), folder / "pages.parquet"])
    whole = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
    detail = (
        f"{rows:,} observations; {hashed / rows:.1f} bytes of hash each; {whole / 1e6:.0f} MB in all with transitions, "
        f"notices, registry and aggregates, {(whole - hashed) / rows:.2f} bytes each"
    )
    return Result("bytes for each observation, without its hash", (looks - hashed) / rows, "B", 16.0, detail)


def export_time(folder: Path) -> Result:
    """Exporting a week of 6,000 observations, beyond reading them once."""
    app, made = made_home(folder, links=EXPORTED, weeks=1)
    with app:
        week = made.weeks[0]
        reading = min(_took(lambda: list(app.store.observations(since=week))) for _ in range(ROUNDS))
        targets = [ParquetWarehouse(folder / f"again-{n}") for n in range(ROUNDS)]
        exporting = min(_took(partial(export_week, app.store, each, week, clock=app.clock)) for each in targets)
    beyond = exporting - reading
    return Result(
        f"exporting {EXPORTED:,} observations, beyond reading them", beyond, "s", 1.0, f"reading {reading:.2f} s"
    )


def _from_looks(app: App) -> object:
    """The distribution without the aggregates: from all observations."""
    with ParquetWarehouse(app.home.warehouse).views.opened() as database:
        return database.execute(_FROM_LOOKS).fetchall()


def _by_pandas(app: App) -> object:
    """The distribution as an analyst would do it in pandas, file by file, so that it fits into memory."""
    import pandas as pd

    counted = []
    for path in sorted((app.home.warehouse / "observations").glob("*.parquet")):
        with small_reader() as reader:
            looks = reader.execute("SELECT page, sequence, run_id, outcome FROM read_parquet(?)", [str(path)]).df()
        looks = looks[looks["run_id"].notna()]
        looks["run_week"] = looks["run_id"].str[:10]
        retried = looks["page"].isin(looks.loc[looks["run_id"].str.contains("~retry-", regex=False), "page"])
        last = looks[retried].sort_values("sequence").drop_duplicates(["page", "run_week"], keep="last")
        counted.append(pd.concat([looks[~retried], last]).groupby(["run_week", "outcome"]).size())
    return pd.concat(counted).groupby(level=[0, 1]).sum()


def _in_a_process(home: Path, section: str) -> Any:
    command = [sys.executable, "-m", "linkwatch_pipeline_tests.bench.warehouse", str(home), "--section", section]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _took(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m linkwatch_pipeline_tests.bench.warehouse")
    parser.add_argument("home", type=Path)
    parser.add_argument("--section", choices=SECTIONS)
    asked = parser.parse_args()
    if not (asked.home / "warehouse").is_dir():
        parser.error(f"{asked.home} is no home with a warehouse; 'linkwatch --home DIR generate-history' makes one")
    if asked.section is None:
        _print_all(measure(asked.home))
        return
    with build_app(asked.home, env={}) as app:
        week = app.reports.weeks()[-1]
        cpu = time.process_time()
        seconds = _took(lambda: SECTIONS[asked.section](app, week))
        cpu = time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "cpu": cpu, "peak_mb": peak}))


def _print_all(results: Iterable[Result]) -> None:
    for result in results:
        print(result, flush=True)


if __name__ == "__main__":
    main()
