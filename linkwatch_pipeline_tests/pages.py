"""The pages of the documentation, taken apart, and a shell that runs what they show (rules: docs/README.md)."""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

from linkwatch_pipeline.entrypoints.cli import main

ROOT = Path(__file__).parent.parent
SCRIPTS = Path(sys.executable).parent
PORT_ON_PAGES = "8765"
DEMO_HOME = ".linkwatch-demo"

_FENCE = re.compile(r"```(\w*)\s*$")
_MARK = re.compile(r"<!-- (not run|begins with): (.+) -->$")
_EXIT_CODE = re.compile(r"\s*# exit code (\d+)$")
_PLAIN_LINKWATCH = re.compile(r"(?:[A-Z_]+=\S+ )*linkwatch [^|<>&;$`]*")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_FIXTURE_NOTICE = "fixture home: only "


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block. `mark` is what the comment before it says, such as ("not run", the reason)."""

    page: Path
    line: int
    language: str
    lines: tuple[str, ...]
    mark: tuple[str, str] | None

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


@dataclass(kw_only=True)
class Step:
    """One command of a block, what it is to print (nothing: not looked at) and its exit code."""

    command: str
    code: int = 0
    output: list[str] = field(default_factory=list)


def pages() -> list[Path]:
    """The README and every page of docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    opened: int | None = None
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence is None:
            continue
        if opened is None:
            opened = number
            continue
        before = next((text for text in reversed(lines[:opened]) if text.strip()), "")
        mark = _MARK.match(before)
        language = _FENCE.match(lines[opened])
        yield Block(
            page=page,
            line=opened + 1,
            language=language[1] if language else "",
            lines=tuple(lines[opened + 1 : number]),
            mark=(mark[1], mark[2]) if mark else None,
        )
        opened = None


def steps(block: Block) -> list[Step]:
    """The commands of a block: after `$ ` in a console, each line of a script."""
    found: list[Step] = []
    for line in block.lines:
        if block.language == "console" and not line.startswith("$ "):
            assert found, f"{block.place} begins with output"
            found[-1].output.append(line)
        elif line.strip():
            command = line.removeprefix("$ ")
            code = _EXIT_CODE.search(command)
            found.append(Step(command=_EXIT_CODE.sub("", command), code=int(code[1]) if code else 0))
    return found


def matches(expected: Sequence[str], printed: str) -> bool:
    """Whether the output is as the page shows it: `...` stands for anything; times and widths of columns may differ."""
    pattern = ""
    for line in _plain("\n".join(expected)).splitlines():
        pattern += r"(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n"
    return re.fullmatch(pattern, _plain(printed)) is not None


def _plain(text: str) -> str:
    """One space where there are several, no real times and ports, and without what a fixture home says each time."""
    text = _TIME.sub("TIME", re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{PORT_ON_PAGES}", text))
    lines = [" ".join(line.split()) for line in text.strip("\n").splitlines()]
    return "".join(f"{line}\n" for line in lines if not line.startswith(_FIXTURE_NOTICE))


@dataclass(frozen=True, kw_only=True)
class Demo:
    """A demo that was played, which takes seconds: its home, and what it printed."""

    home: Path
    printed: str


class Shell:
    """Runs a page's commands in a folder, linkwatch's in this process.

    Args:
        port: stands in for the port that pages name, since other tests may use that one.
        played: what a first `linkwatch demo` does; None plays it.
    """

    def __init__(self, folder: Path, *, port: int, played: Demo | None = None) -> None:
        self._folder = folder
        self._port = str(port)
        self._played = played
        self._env = {
            name: value for name, value in os.environ.items() if not name.startswith(("LINKWATCH_", "DAGSTER_"))
        }
        self._env["PATH"] = f"{SCRIPTS}{os.pathsep}{self._env.get('PATH', os.defpath)}"
        self._background: list[subprocess.Popen[str]] = []

    def run(self, command: str) -> tuple[int, str]:
        """The exit code and what was printed, on stdout and stderr together."""
        command = command.replace(PORT_ON_PAGES, self._port)
        if command.startswith("export "):
            self._env.update([self._assignment(word) for word in shlex.split(command)[1:]])
            return 0, ""
        if command == "kill %1":
            self.end()
            return 0, ""
        if command.endswith(" &"):
            self._start(shlex.split(command.removesuffix(" &")))
            return 0, ""
        if command == "linkwatch demo" and self._played is not None and not (self._folder / DEMO_HOME).exists():
            shutil.copytree(self._played.home, self._folder / DEMO_HOME)
            return 0, self._played.printed
        if _PLAIN_LINKWATCH.fullmatch(command):
            code, out, err = self.run_here(command)
            return code, err + out
        done = subprocess.run(
            ["bash", "-c", command], cwd=self._folder, env=self._env, capture_output=True, text=True, timeout=60
        )
        return done.returncode, done.stdout + done.stderr

    def run_python(self, code: str, place: str) -> None:
        """Run an example; it fails if it raises."""
        with self._within(self._env):
            exec(compile(code, place, "exec"), {"__name__": "__example__"})

    def end(self) -> None:
        """Interrupt what runs in the background, and wait for its end."""
        while self._background:
            with self._background.pop() as process:
                process.send_signal(signal.SIGINT)
                _, trouble = process.communicate(timeout=60)
                assert process.returncode == 0, trouble

    def run_here(self, command: str) -> tuple[int, str, str]:
        """Run one linkwatch command in this process: its exit code, stdout and stderr."""
        words = shlex.split(command)
        start = words.index("linkwatch")
        env = {**self._env, **dict(map(self._assignment, words[:start]))}
        if self._is_fixture_home(env, words):
            env.setdefault("LINKWATCH_COOLDOWN_SECONDS", "0")  # people type slower than the pause is long
        out, err = io.StringIO(), io.StringIO()
        with self._within(env), redirect_stdout(out), redirect_stderr(err):
            code = main(words[start + 1 :])
        return code, out.getvalue(), err.getvalue()

    def _is_fixture_home(self, env: dict[str, str], words: list[str]) -> bool:
        home = words[words.index("--home") + 1] if "--home" in words else env.get("LINKWATCH_HOME", ".linkwatch")
        return (self._folder / home / "fixture.json").exists()

    def _start(self, words: list[str]) -> None:
        assert words[:2] == ["linkwatch", "fixture"], "only the fixture site is known to run in the background"
        arguments = words[1:] if "--port" in words else [*words[1:], "--port", self._port]
        process = subprocess.Popen(
            [SCRIPTS / "linkwatch", *arguments],
            cwd=self._folder,
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._background.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("serving "), "the fixture site did not start"

    @contextmanager
    def _within(self, env: dict[str, str]) -> Iterator[None]:
        """This process in the folder, with that environment."""
        before, folder = dict(os.environ), Path.cwd()
        os.environ.clear()
        os.environ.update(env)
        os.chdir(self._folder)
        try:
            yield
        finally:
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(before)

    @staticmethod
    def _assignment(word: str) -> tuple[str, str]:
        name, _, value = word.partition("=")
        return name, value
