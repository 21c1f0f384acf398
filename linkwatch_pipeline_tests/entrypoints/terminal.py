"""The command line as a person has it: a home, and commands that print and end with a code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline.entrypoints.cli import main

SITE = "http://127.0.0.1:8765/guide"
FIXTURE_NOTICE = "fixture home: only 127.0.0.1:8765 is reachable\n"


@dataclass(frozen=True)
class Said:
    """What one command said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """stdout, which holds one JSON document and nothing else."""
        return json.loads(self.out)


class Terminal:
    """Runs commands in this process. Args: home: the folder; None leaves `--home` out."""

    def __init__(self, home: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capture = capture

    def run(self, *words: str) -> Said:
        """Run one command on the home."""
        return self.run_line(["--home", str(self.home), *words])

    def run_line(self, words: Sequence[str]) -> Said:
        """Run exactly this command line."""
        self._capture.readouterr()
        code = main(words)
        captured = self._capture.readouterr()
        return Said(code, captured.out, captured.err)

    def fine(self, *words: str) -> Said:
        """Run a command that has to end well."""
        said = self.run(*words)
        assert said.code == 0, said
        return said

    def refused(self, *words: str) -> str:
        """Run a command that has to be refused with one sentence, having said nothing else; the sentence."""
        said = self.run(*words)
        sentence = said.err.removeprefix(FIXTURE_NOTICE)
        assert (said.code, said.out) == (2, ""), said
        assert sentence.startswith("linkwatch: "), said
        assert sentence.count("\n") == 1, said
        return sentence

    def records(self) -> Any:
        """Everything that is recorded."""
        return self.fine("inspect", "--json").document
