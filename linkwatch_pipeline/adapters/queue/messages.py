"""A message's text: a JSON object of exactly the five fields of SPEC 7.3, so never a URL and never a recipient."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from linkwatch_pipeline.domain.runs import CheckJob

_FIELDS = {"job_id": str, "run_id": str, "link_id": str, "sequence": int, "config_version": int}


def write_message(job: CheckJob) -> str:
    """The text that a queue carries."""
    return json.dumps(asdict(job), separators=(",", ":"))


def read_message(text: str) -> CheckJob:
    """The job that a text asks for. Raises ValueError, which quotes nothing of the text, unless it is exactly one."""
    try:
        content = json.loads(text)
    except ValueError:
        raise ValueError("a message is not JSON") from None
    if not isinstance(content, dict) or content.keys() != _FIELDS.keys():
        raise ValueError(f"a message is not an object of exactly {', '.join(_FIELDS)}")
    wrong = [name for name, kind in _FIELDS.items() if not _is(kind, content[name])]
    if wrong:
        raise ValueError(f"a message holds the wrong kind of {', '.join(wrong)}")
    return CheckJob(**content)


def _is(kind: type, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
