"""How a list goes on where a record of it cannot be read (docs/decisions/0045).

A list that takes `damaged` leaves such a record out and tells it, perhaps not only those that its filters would let
pass: what cannot be read cannot be filtered. Without somebody to tell (None), it raises DamagedRecord at that place.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwatch_pipeline.domain.errors import DamagedRecord

Damaged = Callable[[DamagedRecord], None]
