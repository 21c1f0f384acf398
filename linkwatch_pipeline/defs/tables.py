"""Rows of the store as tables and numbers that people read in the Dagster UI."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice

import dagster as dg

from linkwatch_pipeline.domain.coverage import completeness, coverage, percent
from linkwatch_pipeline.domain.runs import HostChain, Run, RunCounts
from linkwatch_pipeline.domain.timestamps import format_seconds

LONGEST_TABLE = 1000  # rows are stored in Dagster's event log

Cell = str | int | float | bool | None


def table(columns: Mapping[str, str], rows: Iterable[Sequence[Cell]]) -> dg.TableMetadataValue:
    """A table; `columns` maps names to their descriptions. Cut after 1,000 rows."""
    names = list(columns)
    records = [
        dg.TableRecord({name: _plain(cell) for name, cell in zip(names, row, strict=True)})
        for row in islice(rows, LONGEST_TABLE)
    ]
    schema = dg.TableSchema(columns=[dg.TableColumn(name, description=text) for name, text in columns.items()])
    return dg.MetadataValue.table(records, schema)


def _plain(cell: Cell) -> Cell:
    return str(cell) if isinstance(cell, str) else cell  # Dagster stores no enumerations


def outcome_table(counts: RunCounts) -> dg.TableMetadataValue:
    """How the jobs of a run ended."""
    return table(
        {"ended": "outcome, or why there is none", "jobs": "", "share": "of the jobs expected"},
        [(end, jobs, percent(jobs / counts.expected)) for end, jobs in counts.by_end.items()],
    )


def run_numbers(run: Run, counts: RunCounts) -> dict[str, dg.MetadataValue]:
    """A run's arithmetic as metadata."""
    numbers: dict[str, dg.MetadataValue] = {
        "run_id": dg.MetadataValue.text(run.run_id),
        "state": dg.MetadataValue.text(run.state.value),
        "jobs_expected": dg.MetadataValue.int(counts.expected),
        "jobs_terminal": dg.MetadataValue.int(counts.terminal),
        "completeness": dg.MetadataValue.text(percent(completeness(counts))),
        "coverage": dg.MetadataValue.text(percent(coverage(counts))),
        "outcomes": outcome_table(counts),
        "intended_at": dg.MetadataValue.timestamp(run.intended_at),
        "started_at": dg.MetadataValue.timestamp(run.started_at),
        "deadline_at": dg.MetadataValue.timestamp(run.deadline_at),
    }
    if run.closed_at is not None:
        numbers["closed_at"] = dg.MetadataValue.timestamp(run.closed_at)
    return numbers


def host_table(chains: Iterable[HostChain]) -> dg.TableMetadataValue:
    """One row per host, those with the most jobs first."""
    return table(
        {
            "host": "",
            "jobs": "in this run",
            "remaining": "not ended yet",
            "outcomes": "how they ended",
            "active_from": "first request (UTC)",
            "active_until": "last answer (UTC)",
            "next_due": "when the next job may start (UTC), empty when none is left",
        },
        (
            (
                chain.host,
                chain.total,
                chain.remaining,
                ", ".join(f"{end} {count}" for end, count in sorted(chain.counts.items())),
                _moment(chain.first_observed_at),
                _moment(chain.last_observed_at),
                _moment(chain.head_ready_at if chain.remaining else None),
            )
            for chain in sorted(chains, key=lambda chain: (-chain.total, chain.host))
        ),
    )


def _moment(value: datetime | None) -> str:
    return format_seconds(value) if value is not None else ""
