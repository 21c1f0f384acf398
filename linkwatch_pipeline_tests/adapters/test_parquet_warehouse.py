"""What only the Parquet files do; the weekly export as a whole is in use_cases/test_export_week.py."""

from __future__ import annotations

from pathlib import Path

from linkwatch_pipeline.adapters.warehouse.parquet import ParquetWarehouse
from linkwatch_pipeline_tests.builders import MONDAY, a_link, an_observation


def test_a_folder_whose_name_looks_like_a_pattern_is_only_a_name(tmp_path: Path) -> None:
    seen = an_observation(a_link())
    other = ParquetWarehouse(tmp_path / "home-1")
    other.write_week(MONDAY, [an_observation(a_link("other"))])
    for name in ("home-?", "home-[1]", "home-*", "home's"):
        warehouse = ParquetWarehouse(tmp_path / name)
        warehouse.write_week(MONDAY, [seen])
        assert list(warehouse.read_week(MONDAY)) == [seen]
