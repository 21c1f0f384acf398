"""Sleeps that somebody may end."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from linkwatch_pipeline.ports import Clock


async def sleep_until_changed(clock: Clock, at_most: timedelta, changed: asyncio.Event) -> None:
    """Sleep, but no longer than until the event is set."""
    sleeping = asyncio.ensure_future(clock.sleep(at_most))
    waking = asyncio.ensure_future(changed.wait())
    try:
        await asyncio.wait({sleeping, waking}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        sleeping.cancel()
        waking.cancel()
        # Not by awaiting one of them: that its cancelling looks like ours would lose ours, if it came just now.
        await asyncio.wait({sleeping, waking})
