"""A headless Chromium that is spoken to over its own protocol: opens files, measures, clicks, takes pictures."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from websockets.sync.client import ClientConnection, connect

FOUND = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--remote-debugging-port=0",
)


class Browser:
    """One page at a time. Use it as a context manager. `complaints` are what the page said on its console."""

    def __init__(self, profile: Path) -> None:
        assert FOUND is not None
        self.complaints: list[str] = []
        self.requested: list[str] = []
        self._numbers = itertools.count(1)
        self._stack = ExitStack()
        self._process = subprocess.Popen(
            [FOUND, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        try:
            self._socket = self._connect()
        except BaseException:
            self._end()
            raise

    def _connect(self) -> ClientConnection:
        assert self._process.stderr is not None
        said = next(line for line in self._process.stderr if line.startswith("DevTools listening on "))
        address = said.removeprefix("DevTools listening on ").strip()
        socket = self._stack.enter_context(connect(address, max_size=None, open_timeout=60))
        self._socket, self._session = socket, ""
        pages = self._ask("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in pages if target["type"] == "page")
        self._session = self._ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")
        return socket

    def open(
        self, page: Path, *, width: int = 1200, height: int = 900, dark: bool = False, script: bool = True
    ) -> None:
        """Load a file and wait for it."""
        self.complaints.clear()
        self.requested.clear()
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._ask("Emulation.setEmulatedMedia", media="", features=scheme)
        self._ask("Emulation.setScriptExecutionDisabled", value=not script)
        self._ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self._ask("Page.navigate", url=page.as_uri())
        self._wait_for("Page.loadEventFired")

    def print_out(self) -> None:
        """Show the page as it would be on paper."""
        self._ask("Emulation.setEmulatedMedia", media="print")

    def run(self, program: str) -> Any:
        """The value of a JavaScript expression; a promise is waited for. Runs beside the page's own policy."""
        answer = self._ask("Runtime.evaluate", expression=program, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def picture(self, file: Path, *, width: int, height: int, top: int = 0) -> None:
        """A PNG of a part of the page, in pixels from its top."""
        part = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
        shot = self._ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=part)
        file.write_bytes(base64.b64decode(shot["data"]))

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        question: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session:
            question["sessionId"] = self._session
        self._socket.send(json.dumps(question))
        while (heard := self._hear()).get("id") != number:
            pass
        assert "error" not in heard, heard
        answer: dict[str, Any] = heard["result"]
        return answer

    def _wait_for(self, event: str) -> None:
        while self._hear().get("method") != event:
            pass

    def _hear(self) -> dict[str, Any]:
        heard: dict[str, Any] = json.loads(self._socket.recv(timeout=60))
        if heard.get("method") == "Log.entryAdded":
            self.complaints.append(heard["params"]["entry"]["text"])
        elif heard.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(heard["params"]["exceptionDetails"]["text"])
        elif heard.get("method") == "Network.requestWillBeSent":
            self.requested.append(heard["params"]["request"]["url"])
        return heard

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        self._end()
