"""A home: the folder that holds everything of one linkwatch on one machine, made on first use.

A *fixture home* carries the mark `fixture.json`, which only `init` writes: no setting can make an ordinary home one.
"""

from __future__ import annotations

import errno
import ipaddress
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from linkwatch_pipeline.domain.errors import ConfigurationError, InvalidInput
from linkwatch_pipeline.domain.json_text import read_json

LOWEST_FIXTURE_PORT = 1024
_MARK = "fixture.json"
_UNUSABLE = re.compile(r"\?|%[0-9A-Fa-f]{2}")
_FOLDERS = ("mail", "warehouse", "dagster")


@dataclass(frozen=True, slots=True, kw_only=True)
class FixtureMark:
    """The only loopback (ip, port) pairs a fixture home may reach; `story` is whether it plays past weeks."""

    pairs: tuple[tuple[str, int], ...]
    story: bool = False

    def __str__(self) -> str:
        return ", ".join(f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}" for ip, port in self.pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where the parts of a home are; they need not exist yet. `fixture` is None for an ordinary home."""

    folder: Path
    fixture: FixtureMark | None = None

    @property
    def settings_file(self) -> Path:
        return self.folder / "linkwatch.toml"

    @property
    def database(self) -> Path:
        return self.folder / "linkwatch.sqlite3"

    @property
    def database_leftovers(self) -> tuple[Path, ...]:
        """What SQLite keeps beside the database while it is open."""
        return tuple(self.database.with_name(self.database.name + end) for end in ("-wal", "-shm"))

    @property
    def mail(self) -> Path:
        return self.folder / "mail"

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    def report_page(self, week: str) -> Path:
        """The HTML report of a week, by its key; it stands beside the week's files."""
        return self.warehouse / "reports" / f"week={week}.html"

    @property
    def dagster(self) -> Path:
        return self.folder / "dagster"

    @property
    def metrics_file(self) -> Path:
        return self.folder / "metrics.jsonl"

    @property
    def alarm_memory(self) -> Path:
        """What on-call was told by whoever looks at health; beside it, what the watchdog told."""
        return self.folder / "alarm-state.json"

    @property
    def watchdog_memory(self) -> Path:
        return self.folder / "watchdog-state.json"

    @property
    def run_lock(self) -> Path:
        return self.folder / "run.lock"

    @property
    def exists(self) -> bool:
        """Whether somebody made a home here, or began to."""
        return any(p.exists() for p in (self.settings_file, self.database, self.folder / _MARK))


def parse_fixture_pairs(text: str) -> FixtureMark:
    """Read `127.0.0.1:8765[,..]`. Raises InvalidInput unless each is a loopback address with a port from 1024 up."""
    pairs = tuple(_parse_pair(pair.strip()) for pair in text.split(","))
    return FixtureMark(pairs=tuple(dict.fromkeys(pairs)))


def find_home(folder: Path) -> Home:
    """What stands at a path, without touching it. Raises ConfigurationError if no home can be there."""
    folder = folder.absolute()
    if _UNUSABLE.search(str(folder)):
        raise ConfigurationError(
            f"the home {folder} cannot be used: Dagster's database would read a '?' or a percent escape in its path as "
            "something else; name another one with --home."
        )
    try:
        if folder.exists() and not folder.is_dir():
            raise ConfigurationError(f"the home {folder} is not a folder; name another one with --home.")
        return Home(folder=folder, fixture=_read_mark(folder / _MARK))
    except OSError as exc:
        raise ConfigurationError(f"the home {folder} cannot be looked at: {exc.strerror}.") from exc


@contextmanager
def complete_home(home: Home, *, settings_text: str) -> Iterator[None]:
    """Make the missing parts of a home; if the body or the making fails, what was made is taken away again.

    Args: settings_text: the content of a new `linkwatch.toml`.
    Raises: ConfigurationError if the folder cannot be written.
    """
    made: list[Path] = []
    database = [] if home.database.exists() else [home.database, *home.database_leftovers]
    try:
        try:
            _make_parts(home, settings_text, made)
        except OSError as exc:
            raise ConfigurationError(
                f"the home {home.folder} cannot be written: {exc.strerror}. "
                "Name a folder of your own with --home, or mend its permissions."
            ) from exc
        yield
    except BaseException:
        _take_away([*made, *database])
        raise


def _make_parts(home: Home, settings_text: str, made: list[Path]) -> None:
    missing = [folder for folder in (home.folder, *home.folder.parents) if not folder.exists()]
    for folder in reversed(missing):
        _make_folder(folder, made)
    if not os.access(home.folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if home.fixture is not None:  # first, so that half a fixture home never looks like an ordinary one
        mark = {"pairs": [list(pair) for pair in home.fixture.pairs], "story": home.fixture.story}
        _make_file(home.folder / _MARK, json.dumps(mark) + "\n", made)
    _make_file(home.settings_file, settings_text, made)
    for name in _FOLDERS:
        _make_folder(home.folder / name, made)


def _make_folder(folder: Path, made: list[Path]) -> None:
    with suppress(FileExistsError):  # another process may be making the same home
        folder.mkdir()
        made.append(folder)


def _make_file(file: Path, text: str, made: list[Path]) -> None:
    with suppress(FileExistsError):
        with file.open("x", encoding="utf-8") as opened:
            made.append(file)
            opened.write(text)


def _take_away(paths: list[Path]) -> None:
    """Best effort: the error that led here is the one to tell."""
    for path in reversed(paths):
        with suppress(OSError):
            path.rmdir() if path.is_dir() else path.unlink()


def _read_mark(file: Path) -> FixtureMark | None:
    try:
        content = read_json(file.read_text(encoding="utf-8"))
        pairs = tuple(_checked_pair(ip, port) for ip, port in content["pairs"])
        story = content["story"]
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, InvalidInput) as exc:
        # Never taken for an ordinary home: that one may reach the whole internet.
        raise ConfigurationError(
            f"{file} is damaged; make a new fixture home with 'linkwatch init --fixture'."
        ) from exc
    if not pairs or not isinstance(story, bool):
        raise ConfigurationError(f"{file} is damaged; make a new fixture home with 'linkwatch init --fixture'.")
    return FixtureMark(pairs=pairs, story=story)


def _parse_pair(text: str) -> tuple[str, int]:
    ip, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) <= 5):
        _refuse_pair(text)
    return _checked_pair(ip.removeprefix("[").removesuffix("]"), int(port))


def _checked_pair(ip: object, port: object) -> tuple[str, int]:
    shown = f"{ip}:{port}"
    if not isinstance(ip, str) or isinstance(port, bool) or not isinstance(port, int):
        _refuse_pair(shown)
    try:
        address = ipaddress.ip_address(ip)
    except ValueError:
        _refuse_pair(shown)
    if not address.is_loopback or not LOWEST_FIXTURE_PORT <= port <= 65535:
        _refuse_pair(shown)
    return str(address), port


def _refuse_pair(shown: str) -> NoReturn:
    raise InvalidInput(
        "--fixture",
        f"{shown!r} is not a loopback address with a port from {LOWEST_FIXTURE_PORT} up",
        "Give pairs such as 127.0.0.1:8765.",
    )
