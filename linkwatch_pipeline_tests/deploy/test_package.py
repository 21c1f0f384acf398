"""The zip of `make lambda`: what is in it, that it needs nothing else, and that it is always the same."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from linkwatch_pipeline_tests.deploy.templates import DEPLOY

HANDLERS = "linkwatch_pipeline.entrypoints.aws_lambda"
# What Lambda's runtime brings.
RUNTIME = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "urllib3", "six")


def pack(out: Path, *arguments: str) -> str:
    """Run the one command; what it printed."""
    command = [sys.executable, str(DEPLOY / "package_lambda.py"), "--out", str(out), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("zip") / "linkwatch-lambda.zip"
    assert "the same for x86-64 and arm64" in pack(out)
    return out


@pytest.fixture(scope="module")
def target(packed: Path) -> Path:
    """The zip as Lambda unpacks it."""
    folder = packed.parent / "task"
    with zipfile.ZipFile(packed) as content:
        content.extractall(folder)
    return folder


def alone(target: Path, program: str) -> str:
    """Run a program that can import from the standard library and the zip alone; what it printed."""
    begin = f"import sys; sys.path.insert(0, {str(target)!r})\n"
    command = [sys.executable, "-I", "-S", "-B", "-W", "error", "-c", begin + program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={}, cwd=target.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_small_and_holds_nothing_compiled(packed: Path) -> None:
    assert packed.stat().st_size < 2 * 1024 * 1024  # the promise is 15 MB
    names = zipfile.ZipFile(packed).namelist()
    assert not [name for name in names if name.endswith((".so", ".pyd", ".pyc", ".dylib"))]


def test_the_page_says_how_large_it_is(packed: Path) -> None:
    assert f"{packed.stat().st_size / 1_000_000:.1f} MB" in (DEPLOY / "README.md").read_text(encoding="utf-8")


def test_the_same_sources_give_the_same_bytes(packed: Path, tmp_path: Path) -> None:
    pack(tmp_path / "again.zip")
    assert _digest(tmp_path / "again.zip") == _digest(packed)


def test_it_holds_what_the_functions_need_and_no_more(packed: Path) -> None:
    parts = {name.partition("/")[0] for name in zipfile.ZipFile(packed).namelist()}
    packages = {part.removesuffix(".py") for part in parts if not part.endswith(".dist-info")}
    assert packages == {
        "anyio", "certifi", "h11", "httpcore", "httpx", "idna", "linkwatch_pipeline", "typing_extensions",
    }  # fmt: skip
    ours = {name for name in zipfile.ZipFile(packed).namelist() if name.startswith("linkwatch_pipeline/")}
    assert not [name for name in ours if "/defs/" in name or "/cli/" in name or "/handbook/" in name or "test" in name]
    assert not [name for name in ours if "/sqlite" in name or "/status_" in name or name.endswith("_services.py")]
    assert not [name for name in zipfile.ZipFile(packed).namelist() if "pytest" in name]


def test_the_functions_import_from_the_zip_alone_and_load_nothing_heavy(target: Path) -> None:
    """What a cold start compiles: Lambda keeps no bytecode beside the zip. `make bench ARGS=lambda` times it."""
    program = (
        f"import {HANDLERS} as handlers\n"
        "assert all(callable(getattr(handlers, n)) for n in ('dispatch', 'check', 'notify', 'health', 'mail_events'))\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names))"
    )
    assert alone(target, program).split() == ["__main__", "idna", "linkwatch_pipeline"]


def test_every_module_in_it_can_be_imported_with_the_runtime_s_boto3(target: Path, tmp_path: Path) -> None:
    for name in RUNTIME:
        place = Path(str(importlib.util.find_spec(name).origin))  # type: ignore[union-attr]
        found = place.parent if place.name == "__init__.py" else place
        (tmp_path / found.name).symlink_to(found)
    program = (
        f"import importlib, pathlib; sys.path.append({str(tmp_path)!r}); root = pathlib.Path({str(target)!r})\n"
        "for file in sorted((root / 'linkwatch_pipeline').rglob('*.py')):\n"
        "    name = '.'.join(file.relative_to(root).with_suffix('').parts)\n"
        "    importlib.import_module(name.removesuffix('.__init__'))\n"
        "print('all')"
    )
    assert alone(target, program) == "all\n"


def test_a_file_of_one_s_own_can_be_added_and_is_not_there_otherwise(packed: Path, tmp_path: Path) -> None:
    (tmp_path / "loopback_world.py").write_text("")
    pack(tmp_path / "with.zip", "--with", str(tmp_path / "loopback_world.py"))
    added = set(zipfile.ZipFile(tmp_path / "with.zip").namelist()) - set(zipfile.ZipFile(packed).namelist())
    assert added == {"loopback_world.py"}


def test_a_file_that_is_not_there_and_two_of_one_name_are_refused_by_the_argument(tmp_path: Path) -> None:
    (tmp_path / "one.py").touch()
    for given, words in (
        ([tmp_path / "none.py"], "none.py cannot be packed: No such file or directory"),
        ([tmp_path / "one.py", tmp_path / "." / "other" / ".." / "one.py"], "--with is given two files one.py"),
    ):
        command = [sys.executable, str(DEPLOY / "package_lambda.py"), "--out", str(tmp_path / "new" / "out.zip")]
        options = [part for file in given for part in ("--with", str(file))]
        done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2
        assert words in done.stderr
        assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("folder", ["/", "."])
def test_a_folder_is_no_zip(folder: str) -> None:
    command = [sys.executable, str(DEPLOY / "package_lambda.py"), "--out", folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=DEPLOY)
    assert (done.returncode, done.stderr) == (
        2,
        f"package_lambda.py: --out {folder} is a folder; name the zip in it.\n",
    )


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
