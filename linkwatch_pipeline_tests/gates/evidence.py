"""What a gate shows: commands with what they printed, tables, and the claims that were checked on the way."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from linkwatch_pipeline.entrypoints.cli import main


@dataclass
class Evidence:
    """Collected while a gate is walked. `lines` are Markdown; a claim that does not hold raises AssertionError."""

    lines: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        self.lines += [text, ""]

    def claim(self, text: str, shown: object, expected: object) -> None:
        """Check something, and note it with what was seen."""
        assert shown == expected, f"{text}: {shown!r}, not {expected!r}"
        self.lines += [f"* {text}: `{shown}`"]

    def table(self, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        self.lines += ["", f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
        self.lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
        self.lines.append("")

    def transcript(self, text: str) -> None:
        self.lines += ["", "```text", *text.rstrip("\n").splitlines(), "```", ""]


class Desk:
    """A home and a terminal on it; commands run in this process and are written down, the home's folder as `D`."""

    def __init__(self, folder: Path, evidence: Evidence) -> None:
        self.home = folder / "home"
        self._written: list[str] = []
        self._evidence = evidence

    def run(self, *words: str, expect: int = 0) -> str:
        """Run a command that has to end with a certain code; its stdout."""
        code, out, err = run_linkwatch("--home", str(self.home), *words)
        assert code == expect, (words, code, out, err)
        said = "\n".join(line for line in (err + out).splitlines() if not line.startswith("fixture home:"))
        shown = " ".join(f"'{word}'" if " " in word else word for word in words)
        self._written += [self._plain(f"$ linkwatch --home D {shown}"), self._plain(said)]
        if code:
            self._written.append(f"(exit code {code})")
        return out

    def document(self, *words: str) -> Any:
        """The JSON that a command prints; not written down."""
        code, out, err = run_linkwatch("--home", str(self.home), *words, "--json")
        assert code in (0, 1), (words, code, err)
        return json.loads(out)

    def note(self, text: str) -> None:
        """A line between the commands."""
        self._written.append(f"# {text}")

    def close_transcript(self) -> None:
        """Everything written since the last time becomes one block."""
        self._evidence.transcript("\n".join(line for line in self._written if line))
        self._written.clear()

    def counts(self) -> dict[str, int]:
        """How many records of each kind there are."""
        return {kind: len(records) for kind, records in self.document("inspect").items()}

    def _plain(self, text: str) -> str:
        return text.replace(str(self.home), "D")


def run_linkwatch(*words: str) -> tuple[int, str, str]:
    """One command line in this process: exit code, stdout, stderr."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main(words)
    return code, out.getvalue(), err.getvalue()
