"""The shape of the report's tables, and how one is made of what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from linkwatch_pipeline.adapters.report_formats.words import owner_word, place_of
from linkwatch_pipeline.domain.coverage import Ranked
from linkwatch_pipeline.domain.report import CoverageReport

T = TypeVar("T")
Cell = str | int | datetime | None


class Kind(StrEnum):
    """How a column is shown and sorted."""

    TEXT = "text"
    NUMBER = "number"  # counts, shares, times
    URL = "url"
    MOMENT = "moment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    label: str
    kind: Kind = Kind.TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A table with its title, what it says, and what is said when it is empty. `total` counts rows cut off too."""

    key: str
    title: str
    says: str
    empty: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Sections that ask the same of their reader."""

    key: str
    title: str
    says: str
    sections: tuple[Section, ...]


@dataclass(frozen=True, slots=True)
class Sections:
    """Makes tables of a report, each cut at `most` rows."""

    report: CoverageReport
    most: int

    def section(
        self, found: Ranked[T], row: Callable[[T], tuple[Cell, ...]], columns: Sequence[Column], **told: Any
    ) -> Section:
        """A table of what was found; `told` are its key and its words."""
        rows = tuple(row(each) for each in found.rows[: self.most])
        return Section(columns=tuple(columns), rows=rows, total=found.total, **told)

    def link(self, link_id: str) -> tuple[Cell, Cell]:
        """The cells that come before a link's URL."""
        link = self.report.links.get(link_id)
        return place_of(link), owner_word(link)


def numbers(*labels: str) -> tuple[Column, ...]:
    return tuple(Column(label=label, kind=Kind.NUMBER) for label in labels)


def url_column(label: str) -> Column:
    return Column(label=label, kind=Kind.URL)


LINK_COLUMNS = (Column(label="place"), Column(label="owner"), url_column("link"))
