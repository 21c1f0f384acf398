"""An AWS of our own on loopback: ministack in a process of its own, gone when the tests are.

python -m linkwatch_pipeline_tests.cloud.ministack      # what the fixture starts; ends when its stdin closes
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock

START_SECONDS = 60.0
END_SECONDS = 10.0
_ATTEMPTS = 3  # another process may take the free port before ministack does
_LOOK_AGAIN_SECONDS = 0.05
_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """Where the emulator listens, and credentials that it takes (it takes any)."""

    endpoint_url: str
    region: str = "us-east-1"
    access_key_id: str = "testing"
    secret_access_key: str = "testing"

    @property
    def env(self) -> Mapping[str, str]:
        """What another process needs to find it the ordinary boto3 way."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def client(self, service: str, *, config: Any = None) -> Any:
        """A new boto3 client. To be made on one thread; any may use it."""
        return _session(self).client(service, endpoint_url=self.endpoint_url, config=config)

    def reset(self) -> None:
        """Forget everything that was made in it."""
        request = urllib.request.Request(f"{self.endpoint_url}/_ministack/reset", method="POST")
        with urllib.request.urlopen(request, timeout=30) as answer:
            answer.read()


@cache
def _session(cloud: Cloud) -> Any:
    """One for all clients: reading what a service looks like takes most of the time of making one."""
    import boto3

    return boto3.session.Session(
        aws_access_key_id=cloud.access_key_id,
        aws_secret_access_key=cloud.secret_access_key,
        region_name=cloud.region,
    )


@pytest.fixture(scope="session")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """One for all tests of a session (of a worker, with xdist): let each test name its own tables and queues."""
    with started_ministack(tmp_path_factory.mktemp("ministack")) as cloud:
        yield cloud


@contextmanager
def started_ministack(folder: Path) -> Iterator[Cloud]:
    """Start it with everything it writes inside an empty folder; it is gone afterwards."""
    for name in ("state", "s3", "tmp"):
        (folder / name).mkdir()
    for _ in range(_ATTEMPTS):
        port = _free_port()
        with (folder / "output").open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "linkwatch_pipeline_tests.cloud.ministack"],
                cwd=_ROOT,
                env=_environment(folder, port),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            if _answers(port, process):
                yield Cloud(endpoint_url=f"http://127.0.0.1:{port}")
                return
        finally:
            _end(process)
    raise RuntimeError(f"ministack did not start; it said:\n{(folder / 'output').read_text(errors='replace')}")


def _environment(folder: Path, port: int) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "LINKWATCH_"))},
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_HOST": "127.0.0.1",
        "STATE_DIR": str(folder / "state"),
        "S3_DATA_DIR": str(folder / "s3"),
        "TMPDIR": str(folder / "tmp"),
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "DOCKER_HOST": f"unix://{folder}/no-docker.sock",
        "LOG_LEVEL": "WARNING",
    }


def _answers(port: int, process: subprocess.Popen[bytes]) -> bool:
    """Wait until it serves; False if it ended instead."""
    clock, pause = SystemClock(), Event()
    end = clock.monotonic() + START_SECONDS
    while clock.monotonic() < end and process.poll() is None:
        with suppress(OSError):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_ministack/health", timeout=5) as answer:
                return bool(answer.status == 200)
        pause.wait(_LOOK_AGAIN_SECONDS)
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    _end_what_it_started(process.pid)


def _end_what_it_started(group: int) -> None:
    """Its functions are processes of its group; they are dying already, or did not hear of its end."""
    clock, pause = SystemClock(), Event()
    end = clock.monotonic() + END_SECONDS
    with suppress(ProcessLookupError):
        while clock.monotonic() < end:
            os.killpg(group, signal.SIGKILL)
            pause.wait(_LOOK_AGAIN_SECONDS)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _end_with_parent() -> None:
    """Whoever started us closed our stdin, or was killed: nobody needs us any more, nor what we started."""
    sys.stdin.buffer.read()
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def main() -> None:
    from ministack.app import main as serve

    Thread(target=_end_with_parent, daemon=True).start()
    sys.argv = ["ministack"]
    serve()


if __name__ == "__main__":
    main()
