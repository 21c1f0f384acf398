from __future__ import annotations

import pytest

from linkwatch_pipeline.domain.json_text import read_json


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 20_000, "nested too deeply"),
        ('{"a":' * 20_000, "nested too deeply"),
        ('"\\uD83D"', "half a character"),
        ('{"\\udead": 1}', "half a character"),
        ("1" * 5_000, "4300 digits"),
        (b'"\xff"', "utf-8"),
        ("", "Expecting value"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_cannot_be_read_is_one_kind_of_error(text: str | bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_json(text)


def test_what_can_be_read_is_what_stands_there() -> None:
    assert read_json('["\\ud83d\\ude00", "\\\\ud83d", 1.5]') == ["\U0001f600", "\\ud83d", 1.5]
    assert read_json(b"{}") == {}
