"""Arrays of looks become rows with texts, in DuckDB: the same rows for the store and for the warehouse."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from linkwatch_pipeline.adapters.warehouse.history.answers import KINDS
from linkwatch_pipeline.adapters.warehouse.history.fates import Numbers, Round
from linkwatch_pipeline.adapters.warehouse.history.inventory import Inventory
from linkwatch_pipeline.domain.outcomes import RULES_VERSION

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLooks:
    """The looks of one run: `sequences` in the order of `looks.link`; `retry_of` is the run that is retried."""

    run_id: str
    intended_at: datetime
    started_at: datetime
    retry_of: str | None
    looks: Round
    sequences: Numbers

    @property
    def closed_at(self) -> datetime:
        """When the last look had ended, to the minute."""
        return self.started_at + timedelta(minutes=1 + int(self.looks.at.max()) // 60_000_000)


def load_looks(
    database: duckdb.DuckDBPyConnection, inventory: Inventory, runs: Iterable[RunLooks], *, seed: int
) -> int:
    """Make the temporary table `incoming`, a row per look with the fields of an observation; how many there are."""
    import pandas as pd

    frames = {
        "made_links": pd.DataFrame({"link": range(len(inventory)), "link_id": inventory.ids, "url": inventory.urls}),
        "made_answers": pd.DataFrame([_answer_row(number) for number in KINDS]),
        "made_looks": pd.concat([_frame(run) for run in runs], ignore_index=True),
    }
    for name, frame in frames.items():
        database.register(name, frame)
    database.execute(_sql("looks"), {"seed": str(seed), "rules": RULES_VERSION})
    for name in frames:
        database.unregister(name)
    ((count,),) = database.execute("SELECT count(*) FROM incoming").fetchall()
    return int(count)


def _frame(run: RunLooks) -> Any:
    import pandas as pd

    looks = run.looks
    return pd.DataFrame(
        {
            "link": looks.link,
            "answer": looks.answer,
            "redirect": looks.redirect,
            "observed_us": looks.at + microseconds(run.started_at),
            "elapsed": looks.elapsed,
            "latency_ms": looks.latency,
            "bytes_read": looks.size,
            "version": looks.version,
            "certificate": looks.certificate,
            "sequence": run.sequences,
            "run_id": run.run_id,
            "parent": run.retry_of,
            "intended_us": microseconds(run.intended_at),
        }
    ).astype({"run_id": "object", "parent": "object"})


def _answer_row(number: int) -> dict[str, object]:
    kind = next(kind for answer, kind in KINDS.items() if answer == number)
    verdict = kind.verdict
    return {
        "answer": int(number),
        "status": kind.status or 0,
        "marker_found": {None: -1, False: 0, True: 1}[kind.marker_found],
        "outcome": verdict.outcome.value,
        "reason": verdict.reason.value if verdict.reason is not None else "",
    }


def microseconds(moment: datetime) -> int:
    """Since 1970, of a whole second."""
    return round(moment.timestamp()) * 1_000_000


@cache
def _sql(name: str) -> str:
    return resources.files(__package__).joinpath(f"{name}.sql").read_text(encoding="utf-8")
