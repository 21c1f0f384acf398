"""A small Internet on loopback: many host names, plain HTTP and real TLS, every URL by script, every request logged.

In a coroutine:

    world = World({"docs.example.com": Site({"/guide": weekly(200, 404, 404, 200)})})
    async with world:
        fetcher = GuardedFetcher(world.policy, clock=..., user_agent=..., resolver=world.resolver,
                                 ssl_context=world.ssl_context)
        world.week = 1
        ...
        await world.settle()
    assert world.log.overlaps("docs.example.com") == []

Without a loop: `with world.in_thread(): ...`. In a process of its own, which outlives the killing of the process under
test: `with WorldProcess({...}) as world: ...` (the scripts as JSON, see `scripts.site_from_json`).
"""

from __future__ import annotations

from linkwatch_pipeline_tests.world.address_map import AddressMap
from linkwatch_pipeline_tests.world.log import Hit, RequestLog
from linkwatch_pipeline_tests.world.process import WorldProcess
from linkwatch_pipeline_tests.world.scripts import Answer, Behaviour, Request, Site, visits, weekly
from linkwatch_pipeline_tests.world.world import World

__all__ = [
    "AddressMap",
    "Answer",
    "Behaviour",
    "Hit",
    "Request",
    "RequestLog",
    "Site",
    "World",
    "WorldProcess",
    "visits",
    "weekly",
]
