"""Pack the functions of service status: python deploy/package_status.py [--out FOLDER] [--with FILE]

Each is in a zip of its own, which exposes `lambda_function.lambda_handler` and holds only what it needs. As with
`package_lambda.py` nothing in them is compiled, so each is the same for x86-64 and arm64.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from package_lambda import LEFT_OUT_EVERYWHERE, LIBRARIES, ROOT, CannotPack, package

DEFAULT_OUT = ROOT / "dist"
ENTRIES = Path(__file__).resolve().parent / "status"
_POSTGRESQL = ("asn1crypto", "pg8000", "python-dateutil", "scramp", "six")
FUNCTIONS: Mapping[str, Sequence[str]] = {
    "monitor": (*LIBRARIES, *_POSTGRESQL),
    "processor": ("idna", "redis", *_POSTGRESQL),
    "teller": ("idna", *_POSTGRESQL),
}
_LEFT_OUT = (*LEFT_OUT_EVERYWHERE, "adapters/notify", "entrypoints/aws_lambda.py")
_OUTBOX = "adapters/store"  # only the teller writes there


def zip_of(function: str, folder: Path) -> Path:
    """Where a function's zip is written."""
    return folder / f"linkwatch-status-{function}.zip"


def _left_out(function: str) -> Sequence[str]:
    return _LEFT_OUT if function == "teller" else (*_LEFT_OUT, _OUTBOX)


def main() -> int:
    parser = argparse.ArgumentParser(prog="package_status.py", description="Pack the functions of service status.")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="the folder to write to")
    help_with = "one more file for each, such as the authorities of the database's certificate"
    parser.add_argument("--with", dest="extra", type=Path, action="append", default=[], help=help_with)
    arguments = parser.parse_args()
    try:
        for function, libraries in FUNCTIONS.items():
            entry = ENTRIES / function / "lambda_function.py"
            out = zip_of(function, arguments.out)
            package(out, extra=(entry, *arguments.extra), libraries=libraries, left_out=_left_out(function))
            print(f"{out.stat().st_size:>9,}  {out}: the same for x86-64 and arm64, nothing in it is compiled")
    except (CannotPack, OSError) as problem:
        print(f"package_status.py: {problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
