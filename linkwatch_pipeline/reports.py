"""The warehouse for analysts: `connect().sql("FROM weekly_outcomes").df()` is a pandas frame in one line.

The views and their columns are described in docs/reference/warehouse.md.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from linkwatch_pipeline.adapters.home import find_home
from linkwatch_pipeline.adapters.warehouse.parquet import ParquetWarehouse
from linkwatch_pipeline.bootstrap import DEFAULT_HOME
from linkwatch_pipeline.domain.errors import ConfigurationError
from linkwatch_pipeline.settings import HOME_VARIABLE

if TYPE_CHECKING:
    import duckdb


def connect(home: str | os.PathLike[str] | None = None) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection with the views over a home's warehouse, as its files are now. Nothing is written.

    Args: home: the home's folder; without it the one that LINKWATCH_HOME names, else ./.linkwatch.
    Raises: ConfigurationError if there is no home, StoreUnusable naming a damaged file, MissingExtra without DuckDB.
    """
    found = find_home(Path(home or os.environ.get(HOME_VARIABLE) or DEFAULT_HOME))
    if not found.exists:
        raise ConfigurationError(
            f"there is no linkwatch home in {found.folder}; set {HOME_VARIABLE} or name one: connect('DIR')."
        )
    return ParquetWarehouse(found.warehouse).views.connect()
