"""Where settings come from: the home's file, the environment, flags. A name that nobody knows is refused.

Each source yields, for every value that it gives: what to call it in an error, the setting's name, the raw value.
"""

from __future__ import annotations

import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from linkwatch_pipeline.domain.errors import ConfigurationError, InvalidInput
from linkwatch_pipeline.settings.entries import KINDS
from linkwatch_pipeline.settings.variables import (
    ENV_PREFIX,
    NO_SETTINGS,
    PASSWORD_FILE_VARIABLE,
    PASSWORD_VARIABLE,
    variable_of,
)

MAX_BYTES = 1_000_000


def from_file(file: Path) -> Iterator[tuple[str, str, object]]:
    try:
        content = tomllib.loads(_text(file))
    except FileNotFoundError:
        return
    except OSError as exc:
        raise ConfigurationError(f"{file} cannot be read: {exc.strerror}.") from exc
    except UnicodeDecodeError:
        raise ConfigurationError(f"{file} is not text in UTF-8; save it so.") from None
    except RecursionError:
        raise ConfigurationError(f"{file} is nested too deeply; no setting needs that.") from None
    except ValueError as exc:
        raise ConfigurationError(f"{file} is not valid TOML: {exc}.") from exc
    for key, value in content.items():
        if key in ("smtp_password", "smtp_password_file"):
            raise ConfigurationError(
                f"{file}: {key} cannot stand in this file; set {PASSWORD_VARIABLE} or {PASSWORD_FILE_VARIABLE}."
            )
        if key not in KINDS:
            _refuse_unknown(f"{file}: unknown setting {key!r}", key.lower())
        yield f"{key} in {file}", key, value


def _text(file: Path) -> str:
    if not stat.S_ISREG(file.stat().st_mode) and not file.is_dir():  # opening a pipe would wait for its other end
        raise ConfigurationError(f"{file} is not a regular file.")
    with file.open("rb") as opened:
        content = opened.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ConfigurationError(f"{file} is larger than {MAX_BYTES // 1_000_000} MB; no settings need that.")
    return content.decode("utf-8-sig")


def from_env(env: Mapping[str, str]) -> Iterator[tuple[str, str, object]]:
    for name in sorted(env):
        if not name.startswith(ENV_PREFIX) or name in NO_SETTINGS:
            continue
        key = name.removeprefix(ENV_PREFIX).lower()
        if name != variable_of(key) or key not in KINDS:
            _refuse_unknown(f"the environment: unknown variable {name!r}", key, variable_of)
        try:
            value = KINDS[key].read(env[name])
        except InvalidInput as exc:
            raise ConfigurationError(f"{name}: {exc.problem}. {exc.mend}") from exc
        except ValueError:
            value = env[name]  # its check says what it must be
        yield name, key, value


def from_flags(flags: Mapping[str, object]) -> Iterator[tuple[str, str, object]]:
    for key, value in flags.items():
        if value is not None:
            yield f"--{key.replace('_', '-')}", key, value


def _refuse_unknown(problem: str, key: str, spelled: Callable[[str], str] = str) -> NoReturn:
    near = get_close_matches(key, KINDS, n=3)
    names = ", ".join(spelled(name) for name in near or KINDS)
    raise ConfigurationError(f"{problem}. " + (f"Did you mean {names}?" if near else f"There are {names}."))
