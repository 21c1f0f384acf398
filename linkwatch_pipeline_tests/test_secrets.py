"""No body, no credentials and no secret of a URL reaches a log, a row, a mail or a file (SPEC 1, 7.5, 9).

A whole week with the real fetcher over loopback, every logger at DEBUG, with canaries wherever a secret may stand.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from email import policy as mail_policy
from email.parser import BytesParser
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.story_clock import StoryClock
from linkwatch_pipeline.bootstrap import App, build_app
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.use_cases.export_week import export_week
from linkwatch_pipeline.use_cases.observe_week import begin_week, finish_run
from linkwatch_pipeline.use_cases.register import register_link
from linkwatch_pipeline_tests.builders import MONDAY
from linkwatch_pipeline_tests.world import Answer, Site, World
from linkwatch_pipeline_tests.world.hostile import raw, redirect

CANARY = "c4naryS3cret"
OWN = "0wnersT0ken"  # in a URL that the owner registered: it is needed to visit the page
HEADERS = f"Set-Cookie: id={CANARY}\r\nX-Debug: {CANARY}\r\nLink: <http://x/?token={CANARY}>\r\n"


async def everything_in_one(request: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A page that is gone, and says the canary everywhere."""
    body = f"<p>{CANARY}</p>".encode()
    head = f"HTTP/1.1 404 {CANARY}\r\n{HEADERS}Content-Type: text/html; note={CANARY}\r\nETag: {CANARY}\r\n"
    writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    await writer.drain()


def to(location: str) -> Any:
    return redirect(location.encode())


# Each on a host of its own, so that nobody rests for long.
PAGES = {
    "gone": everything_in_one,
    "query": to(f"http://landing.example.com/in?page=2&token={CANARY}&next=%2Fx%3Fsig%3D{CANARY}"),
    "fragment": to(f"http://landing.example.com/#access_token={CANARY}"),
    "credentials": to(f"http://user:{CANARY}@landing.example.com/"),
    "bad-port": to(f"http://landing.example.com:{CANARY}/"),
    "bad-scheme": to(f"javascript:alert('{CANARY}')"),
    "bad-host": to(f"http://{CANARY}%00/?token={CANARY}"),
    "throttled": raw(f"HTTP/1.1 429 Slow\r\nRetry-After: {CANARY}\r\nContent-Length: 0\r\n\r\n".encode()),
    "challenged": raw(f"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm={CANARY}\r\n\r\n{CANARY}".encode()),
    "no-http": raw(f"{CANARY}: no status line at all\r\n\r\n".encode()),
    "bad-header": raw(f"HTTP/1.1 200 OK\r\nX-\x00{CANARY}: y\r\n\r\n".encode()),
    "bad-chunk": raw(f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{CANARY}\r\n".encode()),
    "bad-length": raw(f"HTTP/1.1 200 OK\r\nContent-Length: {CANARY}\r\n\r\n".encode()),
    "changed": Answer(body=f"Domain for sale, call {CANARY}"),
    "our-fault": Answer(),
}


@dataclass
class Week:
    app: App
    log: str

    def everything(self) -> str:
        """All that the home's files hold, what is packed in mails and in the warehouse included."""
        files = [file for file in self.app.home.folder.rglob("*") if file.is_file()]
        texts = [file.read_bytes().decode("latin-1") for file in files]
        for mail in self.app.home.mail.iterdir():
            message = BytesParser(policy=mail_policy.default).parsebytes(mail.read_bytes())
            texts += [part.get_content() for part in message.walk() if not part.is_multipart()]
        texts += [repr(row) for row in self.app.warehouse.read_week(MONDAY)]
        return "\n".join(texts)

    @property
    def seen(self) -> dict[str, Observation]:
        return {observation.link_id: observation for observation in self.app.store.observations()}


@pytest.fixture
def week(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Week]:
    sites = {f"{name}.example.com": Site(otherwise=script) for name, script in PAGES.items()}
    with World({**sites, "landing.example.com": Site(otherwise=everything_in_one)}).in_thread() as world:

        async def resolver(host: str, port: int) -> list[tuple[str, int]]:
            if host.startswith("our-fault"):
                raise RuntimeError(f"a fault of ours that quotes what it saw: {CANARY} {OWN}")
            return await world.resolver(host, port)

        # The breaker would hold the mails of a week in which so many hosts give no answer.
        env = {"LINKWATCH_CONTACT": "links@example.com", "LINKWATCH_BREAKER": "false"}
        clock = StoryClock(SystemClock(), MONDAY)
        parts: dict[str, Any] = {"policy": world.policy, "resolver": resolver, "ssl_context": world.ssl_context}
        with caplog.at_level(logging.DEBUG), build_app(tmp_path / "home", env=env, clock=clock, **parts) as app:
            for name in PAGES:
                register_link(
                    app.store,
                    link_id=name,
                    url=f"http://{name}.example.com/?token={OWN}",
                    owner="docs",
                    notify="docs@example.com",
                    marker="guide" if name == "changed" else None,
                    confirm=None,
                    now=MONDAY - timedelta(days=1),
                )
            with app.sole_runner() as worker:
                run = begin_week(app.store, MONDAY, now=app.clock.now())
                app.observe(run, None, worker=worker)
                finish_run(app.store, run.run_id, now=app.clock.now())
            app.deliver()
            export_week(app.store, app.warehouse, MONDAY, clock=app.clock)
            formatter = logging.Formatter("%(name)s %(message)s")
            log = "\n".join(f"{formatter.format(record)} {vars(record)}" for record in caplog.records)
            yield Week(app, log)


def test_no_secret_reaches_a_log_a_row_a_mail_or_a_file(week: Week) -> None:
    seen = week.seen
    assert set(seen) == set(PAGES)
    assert [seen[name].status for name in ("gone", "query", "challenged", "changed")] == [404, 404, 401, 200]
    assert str(seen["query"].final_url).startswith("http://landing.example.com/in?page=2&token=REDACTED")
    assert len(list(week.app.home.mail.iterdir())) == 3  # gone, and two redirects that end there
    everything = week.everything()
    assert "link checked" in week.log
    assert "fetch failed inside: RuntimeError" in week.log
    for where, text in (("log", week.log), ("home", everything)):
        found = text.find(CANARY)
        assert found < 0, f"the {where} holds a secret: ...{text[max(found - 200, 0) : found + 100]}"
    # The owner's own URL is needed for the visit and shown in the owner's mail, but no log holds it.
    assert OWN in everything
    assert OWN not in week.log
