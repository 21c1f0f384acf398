"""Expressions of EventBridge Scheduler, judged before anything is made: CloudFormation refuses a wrong one half-way."""

from __future__ import annotations

import re
from datetime import datetime

_RATE = re.compile(r"rate\(([0-9]+) (minutes?|hours?|days?)\)")
_AT = re.compile(r"at\(([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})\)")
_CRON = re.compile(r"cron\((.*)\)")
_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
# Of each field: its name, the lowest and the highest number, words for numbers, and what else it may be.
_FIELDS = (
    ("minutes", 0, 59, [], ""),
    ("hours", 0, 23, [], ""),
    ("day of month", 1, 31, [], r"\?|L|LW|[0-9]{1,2}W"),
    ("month", 1, 12, _MONTHS, ""),
    ("day of week", 1, 7, _DAYS, r"\?|L|[1-7]L|[1-7]#[1-5]"),
    ("year", 1970, 2199, [], ""),
)


def schedule_problem(expression: str) -> str | None:
    """What an expression must be and is not; None if it is one."""
    if expression.startswith("rate"):
        return _rate_problem(expression)
    if expression.startswith("at"):
        return _at_problem(expression)
    return _cron_problem(expression)


def _rate_problem(expression: str) -> str | None:
    found = _RATE.fullmatch(expression)
    number = int(found[1][:9]) if found is not None else 0
    if found is None or number == 0 or (number == 1) == found[2].endswith("s"):
        return "must be rate(1 minute), rate(2 minutes) or more, or so with hours or days"
    return None


def _at_problem(expression: str) -> str | None:
    found = _AT.fullmatch(expression)
    try:
        datetime.fromisoformat(found[1] if found is not None else "")
    except ValueError:
        return "must be a moment such as at(2026-09-28T09:00:00)"
    return None


def _cron_problem(expression: str) -> str | None:
    found = _CRON.fullmatch(expression)
    fields = found[1].split() if found is not None else []
    if len(fields) != len(_FIELDS):
        names = ", ".join(name for name, *_ in _FIELDS)
        return f"must be cron() of six fields ({names}), such as cron(0 9 ? * MON *)"
    for text, (name, lowest, highest, words, special) in zip(fields, _FIELDS, strict=True):
        if not re.fullmatch(special or "(?!)", text, re.IGNORECASE) and not _is_list(text, lowest, highest, words):
            return f"must have other {name} than {text!r}: numbers from {lowest} to {highest}, as in 1,2 or 1-3 or 0/5"
    if (fields[2] == "?") == (fields[4] == "?"):
        return "must have ? for either the day of month or the day of week"
    return None


def _is_list(text: str, lowest: int, highest: int, words: list[str]) -> bool:
    return all(_is_range(part, lowest, highest, words) for part in text.split(","))


def _is_range(text: str, lowest: int, highest: int, words: list[str]) -> bool:
    span, slash, step = text.partition("/")
    if slash and not (re.fullmatch(r"[0-9]{1,4}", step) and int(step)):
        return False
    ends = span.split("-")
    return span == "*" or (len(ends) <= 2 and all(_is_value(end, lowest, highest, words) for end in ends))


def _is_value(text: str, lowest: int, highest: int, words: list[str]) -> bool:
    return text.upper() in words or (bool(re.fullmatch(r"[0-9]{1,4}", text)) and lowest <= int(text) <= highest)
