"""Reading many records of which one may be damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from linkwatch_pipeline.domain.errors import DamagedRecord
from linkwatch_pipeline.ports import Damaged

Raw = TypeVar("Raw")
T = TypeVar("T")


def readable(found: Iterable[Raw], read: Callable[[Raw], T], damaged: Damaged | None) -> Iterator[T]:
    """What `read` makes of each. A damaged one is left out and told; raised if there is nobody to tell."""
    for raw in found:
        try:
            record = read(raw)
        except DamagedRecord as error:
            if damaged is None:
                raise
            damaged(error)
        else:
            yield record
