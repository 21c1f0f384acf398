"""Pack the Lambda functions into one zip: python deploy/package_lambda.py [--out FILE] [--with MODULE_FILE]

What is packed is linkwatch's core and the libraries that it needs, as they are installed here (the lock file names and
hashes them). boto3 is not packed: Lambda brings it. Nothing that is packed is compiled, so the zip is the same for
x86-64 and arm64, which is checked. The same sources give the same bytes.
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DEFAULT_OUT = ROOT / "dist" / "linkwatch-lambda.zip"
LIBRARIES = ("anyio", "certifi", "h11", "httpcore", "httpx", "idna", "typing_extensions")
# What no function on AWS enters; what that needs is not packed either. Names, patterns of names, or rooms.
LEFT_OUT_EVERYWHERE = (
    "definitions.py",
    "reports.py",
    "defs",
    "entrypoints/cli",
    "adapters/fixture_site.py",
    "adapters/handbook",
    "adapters/report_formats",
    "adapters/reports",
    "adapters/store/migrations",
    "adapters/store/sqlite*.py",
    "adapters/tables",
    "adapters/warehouse",
)
# What only the functions of service status enter, which have zips of their own.
_STATUS = (
    "adapters/status_store",
    "entrypoints/status_lambda.py",
    "status_bootstrap.py",
    "use_cases/*_services.py",
    "use_cases/*_status*.py",
)
LEFT_OUT = (*LEFT_OUT_EVERYWHERE, *_STATUS)
MOST_BYTES = 15 * 1024 * 1024
_COMPILED = (".so", ".pyd", ".dylib", ".dll")
_OLDEST_THAT_A_ZIP_CAN_SAY = (1980, 1, 1, 0, 0, 0)
_READABLE_FILE = 0o100644 << 16


class CannotPack(Exception):
    """Said to the person as it is."""


def package(
    out: Path, *, extra: tuple[Path, ...] = (), libraries: Sequence[str] = LIBRARIES, left_out: Sequence[str] = LEFT_OUT
) -> dict[str, int]:
    """Write the zip; how many bytes each part has in it.

    Args:
        extra: files to put beside the packages, for a target of one's own such as an emulator.
        libraries, left_out: what to pack of others, and what not of our own.
    """
    files = dict(_our_files(left_out))
    for name in libraries:
        files.update(_library_files(name))
    files.update(_given_files(extra))
    if out.is_dir():
        raise CannotPack(f"--out {out} is a folder; name the zip in it.")
    out.parent.mkdir(parents=True, exist_ok=True)
    unfinished = out.with_name(out.name + ".part")
    sizes: dict[str, int] = {}
    try:
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
            for name in sorted(files):
                entry = zipfile.ZipInfo(name, _OLDEST_THAT_A_ZIP_CAN_SAY)
                entry.external_attr, entry.compress_type = _READABLE_FILE, zipfile.ZIP_DEFLATED
                packed.writestr(entry, files[name].read_bytes(), compresslevel=9)
                part = name.partition("/")[0]
                sizes[part] = sizes.get(part, 0) + packed.getinfo(name).compress_size
        if unfinished.stat().st_size > MOST_BYTES:
            raise CannotPack(f"the zip has {unfinished.stat().st_size} bytes, more than {MOST_BYTES}.")
        unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)
    return sizes


def _given_files(extra: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """What --with names. Raises CannotPack for one that cannot be read, and for two that would take one place."""
    names: set[str] = set()
    for file in extra:
        if file.name in names:
            raise CannotPack(f"--with is given two files {file.name}, and both would have that name in the zip.")
        names.add(file.name)
        try:
            file.open("rb").close()
        except OSError as error:
            raise CannotPack(
                f"--with {file} cannot be packed: {error.strerror}. Name a file that is there and can be read, or "
                "leave it out."
            ) from error
        yield file.name, file


def _our_files(unwanted: Sequence[str]) -> Iterator[tuple[str, Path]]:
    package_folder = ROOT / "linkwatch_pipeline"
    for file in package_folder.rglob("*"):
        inside = file.relative_to(package_folder).as_posix()
        left_out = any(fnmatchcase(inside, name) or inside.startswith(f"{name}/") for name in unwanted)
        if file.is_file() and not left_out and "__pycache__" not in file.parts:
            yield f"linkwatch_pipeline/{inside}", file


def _library_files(name: str) -> Iterator[tuple[str, Path]]:
    for file in _distribution(name).files or ():
        compiled = file.name.endswith(_COMPILED)
        if compiled:
            raise CannotPack(f"{name} has a compiled part ({file}), which would not run on every architecture.")
        # Licences stay with what they are about; the rest of the metadata says nothing at run time.
        described = ".dist-info" in file.parts[0] and not any(
            word in file.name.upper() for word in ("LICEN", "METADATA")
        )
        for_tests = file.name == "pytest_plugin.py"
        if ".." not in file.parts and "__pycache__" not in file.parts and not described and not for_tests:
            yield file.as_posix(), Path(str(file.locate()))


def _distribution(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError:
        raise CannotPack(f"{name} is not installed here; run 'make venv' and use .venv/bin/python.") from None


def main() -> int:
    parser = argparse.ArgumentParser(prog="package_lambda.py", description="Pack the Lambda functions into one zip.")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="the zip to write")
    parser.add_argument("--with", dest="extra", type=Path, action="append", default=[], help="one more file to pack")
    arguments = parser.parse_args()
    try:
        sizes = package(arguments.out, extra=tuple(arguments.extra))
    except (CannotPack, OSError) as problem:
        print(f"package_lambda.py: {problem}", file=sys.stderr)
        return 2
    for part, size in sorted(sizes.items(), key=lambda item: -item[1]):
        print(f"{size:>9,}  {part}")
    print(
        f"{arguments.out.stat().st_size:>9,}  {arguments.out}: the same for x86-64 and arm64, nothing in it is compiled"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
