"""The core runs with httpx and click alone, and the command line starts without what is heavy (ARCHITECTURE 1)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.fixture_site import FixtureSite

ROOT = Path(__file__).resolve().parents[1]
# What `pip install linkwatch-pipeline` brings, without extras.
BASE = ("httpx", "httpcore", "h11", "idna", "anyio", "certifi", "click", "typing_extensions")
HEAVY = ("dagster", "pandas", "duckdb", "numpy", "boto3")
CORE = (
    "linkwatch_pipeline.domain.recording",
    "linkwatch_pipeline.ports",
    "linkwatch_pipeline.use_cases.observe_week",
    "linkwatch_pipeline.use_cases.hand_check",
    "linkwatch_pipeline.use_cases.deliver",
    "linkwatch_pipeline.use_cases.reconcile",
    "linkwatch_pipeline.adapters.notify.smtp",
    "linkwatch_pipeline.adapters.notify.ses_events",
    "linkwatch_pipeline.adapters.store.sqlite",
    "linkwatch_pipeline.adapters.fetch.guarded",
    "linkwatch_pipeline.adapters.queue.memory",
    "linkwatch_pipeline.bootstrap",
    "linkwatch_pipeline.entrypoints.status_lambda",
    "linkwatch_pipeline.status_bootstrap",
)
LINKWATCH = "import sys; from linkwatch_pipeline.entrypoints.cli import main; sys.exit(main())"
PATIENT = f"from linkwatch_pipeline_tests.patience import be_patient; be_patient(); {LINKWATCH}"


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that holds the base packages only, copied from this one."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    for name in BASE:
        for file in distribution(name).files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file.locate(), site / file)
    (site / "linkwatch.pth").write_text(f"{ROOT}\n")
    return folder / "bin" / "python"


def test_the_core_imports_with_the_base_packages_only(bare_python: Path) -> None:
    for heavy in HEAVY:
        assert _run(bare_python, f"import {heavy}", expect=1).endswith(f"No module named '{heavy}'\n")
    _run(bare_python, f"import {', '.join(CORE)}")


def test_a_link_is_recorded_listed_checked_and_told_of_with_the_base_packages_only(
    bare_python: Path, tmp_path: Path
) -> None:
    home = str(tmp_path / "home")
    site = FixtureSite(port=0)
    with site.running():
        url = f"{site.url}guide"
        _run(bare_python, LINKWATCH, "--home", home, "init", "--fixture", f"{site.host}:{site.port}")
        owner = ("--owner", "docs", "--notify", "docs@example.com")
        _run(bare_python, LINKWATCH, "--home", home, "register", "guide", url, *owner)
        _run(bare_python, LINKWATCH, "--home", home, "record", "guide", url, "--sequence", "0", "--status", "404")
        _run(bare_python, PATIENT, "--home", home, "check", "guide")
    listed = json.loads(_run(bare_python, LINKWATCH, "--home", home, "links", "--json"))
    assert [(link["state"], link["last_sequence"]) for link in _links(listed)] == [("reachable", 1)]
    _run(bare_python, LINKWATCH, "--home", home, "deliver")
    assert len(list((tmp_path / "home" / "mail").glob("*.eml"))) == 2


def test_running_a_week_names_the_extra_that_is_missing(bare_python: Path, tmp_path: Path) -> None:
    said = _run(bare_python, LINKWATCH, "--home", str(tmp_path / "home"), "run", expect=2)
    assert "dagster" in said.splitlines()[-1]
    assert "Traceback" not in said


def test_mail_by_ses_names_the_extra_that_is_missing(bare_python: Path, tmp_path: Path) -> None:
    chosen = 'mail = "ses"\nmail_from = "linkwatch@example.com"\nses_configuration_set = "linkwatch"\n'
    (tmp_path / "linkwatch.toml").write_text(chosen)
    said = _run(bare_python, LINKWATCH, "--home", str(tmp_path), "deliver", expect=2)
    assert "mail through Amazon SES needs the extra 'aws'" in said.splitlines()[-1]
    assert "Traceback" not in said


def test_service_status_names_the_extra_that_is_missing(bare_python: Path, tmp_path: Path) -> None:
    program = (
        "import os; os.environ |= {'DATABASE_URL': 'postgresql://u:p@127.0.0.1:9/d', 'REDIS_URL': 'redis://127.0.0.1:9'}\n"
        + LINKWATCH
    )
    for command in (("show",), ("run", "--once")):
        said = _run(bare_python, program, "--home", str(tmp_path / "home"), "status", *command, expect=2)
        assert "linkwatch-pipeline[status]" in said.splitlines()[-1]


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys; from linkwatch_pipeline.entrypoints.cli import main; main(['--help']);"
        f"print('loaded:', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    said = _run(Path(sys.executable), program)
    assert said.startswith("Usage: linkwatch")
    assert said.splitlines()[-1] == "loaded: []"


def _links(document: object) -> list[dict[str, object]]:
    links = document["links"] if isinstance(document, dict) else document
    assert isinstance(links, list)
    return links


def _run(python: Path, program: str, *arguments: str, expect: int = 0) -> str:
    """Run a program in an environment of its own; what it printed."""
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LINKWATCH"))}
    done = subprocess.run(
        [python, "-W", "error", "-c", program, *arguments], capture_output=True, text=True, timeout=60, env=alone
    )
    assert done.returncode == expect, done.stderr
    return done.stdout if expect == 0 else done.stderr
