"""Builders for what is told to people: notices and mails, with everything a test does not care about filled in."""

from __future__ import annotations

from typing import Any

from linkwatch_pipeline.domain.links import LinkState, Place
from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.ports import Mail
from linkwatch_pipeline_tests.builders import MONDAY, RUN_ID, URL, after


def a_notice(**changes: Any) -> Notice:
    """That `guide` broke on MONDAY, with one place in the handbook."""
    defaults: dict[str, Any] = {
        "transition_id": "guide:2",
        "link_id": "guide",
        "url": URL,
        "owner": "docs-team",
        "places": (Place(file="handbook/setup.md", line=12),),
        "from_state": LinkState.REACHABLE,
        "to_state": LinkState.BROKEN,
        "since": after(days=-7),
        "run_id": RUN_ID,
        "job_id": f"{RUN_ID}:guide",
        "observed_status": 404,
        "observed_reason": Reason.GONE,
        "observed_at": MONDAY,
        "created_at": MONDAY,
        "release_at": MONDAY,
    }
    return Notice(**defaults | changes)


def a_recovery(**changes: Any) -> Notice:
    """That `guide` could be reached again on MONDAY, a week after it broke."""
    defaults: dict[str, Any] = {
        "transition_id": "guide:3",
        "from_state": LinkState.BROKEN,
        "to_state": LinkState.REACHABLE,
        "observed_status": 200,
        "observed_reason": None,
    }
    return a_notice(**defaults | changes)


def a_mail(**changes: Any) -> Mail:
    defaults: dict[str, Any] = {
        "transition_id": "guide:2",
        "sender": "linkwatch@example.com",
        "recipient": "docs-team@example.com",
        "subject": "[linkwatch] Broken: guide",
        "text": "The answer was 404 Not Found.\n",
        "html": "<p>The answer was 404 Not Found.</p>\n",
        "message_id": "<guide_3a2@linkwatch.invalid>",
        "date": MONDAY,
        "references": ("<guide.thread@linkwatch.invalid>",),
    }
    return Mail(**defaults | changes)
