"""The warehouse and what reads or fills it. The only place here that may name the rooms of heavy libraries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from linkwatch_pipeline.adapters.home import Home
from linkwatch_pipeline.domain.errors import MissingExtra
from linkwatch_pipeline.ports import History, Reports

if TYPE_CHECKING:
    from linkwatch_pipeline.adapters.warehouse.parquet import ParquetWarehouse


def open_warehouse(home: Home) -> ParquetWarehouse:
    from linkwatch_pipeline.adapters.warehouse.parquet import ParquetWarehouse

    return ParquetWarehouse(home.warehouse)


def open_reports(home: Home) -> Reports:
    from linkwatch_pipeline.adapters.reports.duckdb_reports import DuckDBReports

    return DuckDBReports(open_warehouse(home).views)


@contextmanager
def bucket_copy(folder: Path, place: str) -> Iterator[None]:
    """A warehouse's folder for the time of a block: brought up to date from a bucket before, copied there afterwards.

    Args: place: the bucket's name, with a prefix behind a slash if there is one; "" copies nothing.
    Raises: StoreUnavailable, MissingExtra.
    """
    if not place:
        yield
        return
    try:
        from linkwatch_pipeline.adapters.warehouse.bucket import connect_bucket
    except ModuleNotFoundError as error:
        raise MissingExtra("aws", "the setting 'warehouse_bucket'") from error
    bucket, _, prefix = place.partition("/")
    copy = connect_bucket(folder, bucket=bucket, prefix=prefix)
    copy.fetch()
    yield
    copy.store()


def make_history(home: Home, links: int, *, seed: int, first_week: datetime, confirm: int) -> History:
    """A made-up history of so many links, the same for the same seed. Raises MissingExtra without numpy."""
    try:
        from linkwatch_pipeline.adapters.warehouse.history.generated import GeneratedHistory
    except ImportError as exc:
        raise MissingExtra("reports", "a made-up history") from exc
    return GeneratedHistory(
        links,
        seed=seed,
        first_week=first_week,
        warehouse=open_warehouse(home),
        folder=home.warehouse,
        confirm=confirm,
    )
