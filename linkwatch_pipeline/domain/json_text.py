"""Reads JSON that others wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

# Makes what an object is of its fields in order, with those that stand there twice.
OfFields = Callable[[list[tuple[str, Any]]], Any]

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_json(text: str | bytes, *, of_fields: OfFields | None = None) -> Any:
    """What a text in UTF-8 says. Raises ValueError if it is not JSON, nested too deeply, or holds half a character.

    Half a character (a lone surrogate) is something that no store, mail or answer can hold.
    """
    written = text if isinstance(text, str) else text.decode()
    content = parse_json(written, of_fields=of_fields)
    if _SURROGATE.search(written) is not None:
        try:
            json.dumps(content, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("it holds half a character") from None
    return content


def parse_json(text: str, *, of_fields: OfFields | None = None) -> Any:
    """As `read_json`, half characters and all: for whoever looks at each field, to name the one that is wrong."""
    try:
        return json.loads(text, object_pairs_hook=of_fields)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
