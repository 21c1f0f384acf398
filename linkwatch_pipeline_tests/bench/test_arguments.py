"""What is started by hand with numbers or a home refuses what it cannot use, and makes nothing."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("module", "arguments", "words"),
    [
        ("bench.memory", [], "the following arguments are required: LINKS, HOSTS, BUSIEST, CONCURRENCY"),
        ("bench.memory", ["10", "1", "1", "1"], "argument HOSTS: '1' is no whole number from 2 to 1,000,000"),
        ("bench.memory", ["10", "2", "1", "0"], "argument CONCURRENCY: '0' is no whole number from 1 to 200"),
        ("bench.memory", ["10", "2", "11", "1"], "BUSIEST is more than LINKS"),
        ("bench.warehouse", ["none"], "none is no home with a warehouse"),
        ("simulation.__main__", [], "the following arguments are required: FIRST"),
        ("simulation.__main__", ["x"], "argument FIRST: 'x' is no whole number"),
        ("simulation.__main__", ["1", "0"], "argument COUNT: '0' is no whole number"),
        ("simulation.delivery", ["1", "-1"], "argument WEEKS: '-1' is no whole number from 1 to 10,000"),
    ],
)
def test_what_cannot_be_used_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    module: str,
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [module, *arguments])
    with pytest.raises(SystemExit) as ended:
        import_module(f"linkwatch_pipeline_tests.{module}").main()
    told = capsys.readouterr()
    assert (ended.value.code, told.out) == (2, "")
    assert words in told.err
    assert list(tmp_path.iterdir()) == []
