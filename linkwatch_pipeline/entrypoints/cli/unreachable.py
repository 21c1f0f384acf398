"""A word on links that this home never visits, said when they are registered and not weeks later."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from linkwatch_pipeline.entrypoints.cli.opening import home_folder
from linkwatch_pipeline.entrypoints.cli.output import note

if TYPE_CHECKING:
    from linkwatch_pipeline.domain.links import Link

MOST_NAMED = 20


def warn_of_unreachable(context: click.Context, links: Iterable[Link]) -> None:
    """Name on stderr the links whose URL the home's fetch policy refuses, whatever its name resolves to."""
    from linkwatch_pipeline.bootstrap import scanning_policy
    from linkwatch_pipeline.domain.urls import RefusedUrl, parse_url

    policy = scanning_policy(home_folder(context))
    refusals = 0
    for link in links:
        try:
            policy.judge_url(parse_url(link.url))
        except RefusedUrl as refused:
            refusals += 1
            if refusals <= MOST_NAMED:
                note(
                    f"warning: {link.id} is watched, but every check of it will be uncertain "
                    f"({refused.reason.value}): {refused.problem}"
                )
    if refusals > MOST_NAMED:
        note(f"warning: so will those of {refusals - MOST_NAMED} more links")
