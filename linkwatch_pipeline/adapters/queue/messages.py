"""A message's text: a JSON object of exactly the five fields of SPEC 7.3, so never a URL and never a recipient."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import Any

from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline.domain.json_text import read_json
from linkwatch_pipeline.domain.links import check_link_id
from linkwatch_pipeline.domain.runs import CheckJob, hand_job_id, job_id

_FIELDS = {"job_id": str, "run_id": str, "link_id": str, "sequence": int, "config_version": int}
# What a store can be asked for: longer ones, half characters and the like are no key there.
_RUN_ID = re.compile(r"[!-~]{0,60}")
_ENDLESS = 10**20


def write_message(job: CheckJob) -> str:
    """The text that a queue carries."""
    return json.dumps(asdict(job), separators=(",", ":"))


def read_message(text: str) -> CheckJob:
    """The job that a text asks for. Raises ValueError, which quotes nothing of the text, unless it is exactly one."""
    try:
        content = read_json(text)
    except ValueError:
        raise ValueError("a message is not JSON") from None
    if not isinstance(content, dict) or content.keys() != _FIELDS.keys():
        raise ValueError(f"a message is not an object of exactly {', '.join(_FIELDS)}")
    wrong = [name for name, kind in _FIELDS.items() if not _is(kind, content[name])]
    if wrong:
        raise ValueError(f"a message holds the wrong kind of {', '.join(wrong)}")
    message = CheckJob(**content)
    _check_ids(message)
    return message


def _is(kind: type, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _check_ids(message: CheckJob) -> None:
    """Stores are asked by run and link, and letters are named by job: all three have to speak of the same one."""
    try:
        check_link_id(message.link_id)
    except InvalidInput:
        raise ValueError("a message's link_id is none") from None
    if _RUN_ID.fullmatch(message.run_id) is None or not 0 <= message.sequence < _ENDLESS:
        raise ValueError("a message's run_id or sequence is none")
    by_hand = hand_job_id(message.sequence, message.link_id)
    if message.job_id != (by_hand if message.is_by_hand else job_id(message.run_id, message.link_id)):
        raise ValueError("a message's job_id is not that of its run and link")
