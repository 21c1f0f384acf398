"""How often a week asks the store, counted by running it: 6,000 links on 1,000 hosts in virtual time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline_tests.bench.result import Result
from linkwatch_pipeline_tests.simulation.engine import Engine
from linkwatch_pipeline_tests.simulation.scripted_internet import Answer, Script

HOSTS, LINKS_PER_HOST = 1000, 6
_TAKES = timedelta(seconds=2)
_READS = ("get_", "runs", "jobs", "chains", "longest_chains", "links", "observations")


class CountingStore:
    """A store that counts its calls, by method."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Callable[..., object]:
        method: Callable[..., object] = getattr(self._store, name)

        def counted(*args: object, **kwargs: object) -> object:
            self.calls[name] += 1
            return method(*args, **kwargs)

        return counted


def store_calls(folder: Path) -> Iterator[Result]:
    """Calls of the store a check, dispatch and close included: of a week without trouble, and of one with some."""
    yield _count(folder / "calm", "all pages fine", lambda url, asked: Answer(takes=_TAKES))
    yield _count(folder / "mixed", "2 % gone, 5 % redirected to another host, 1 % of hosts say 429 once", _mixed)


def _mixed(url: str, asked: int) -> Answer:
    host, page = int(url[9:13]), int(url.rpartition("/")[2])
    number = host * LINKS_PER_HOST + page
    if host % 100 == 50 and page == 0 and asked == 0:
        return Answer(takes=_TAKES, status=429, retry_after="30")
    if number % 20 == 7:
        return Answer(takes=_TAKES, status=302, location=f"https://h{(host + 1) % HOSTS:04d}.example/99")
    return Answer(takes=_TAKES, status=404 if number % 50 == 3 else 200)


def _count(folder: Path, name: str, script: Script) -> Result:
    folder.mkdir(parents=True)
    engine = Engine(folder, script)
    real = engine.store
    with real.grouped():
        engine.register(f"https://h{host:04d}.example/{n}" for host in range(HOSTS) for n in range(LINKS_PER_HOST))
        counting = CountingStore(real)
        engine.store = counting  # type: ignore[assignment]
        run = engine.observe()
    assert run.totals is not None
    checks = run.totals.terminal
    real.close()
    per_check = {method: calls / checks for method, calls in counting.calls.most_common() if calls / checks >= 0.005}
    writes = sum(calls for method, calls in per_check.items() if not method.startswith(_READS))
    listed = ", ".join(f"{method} {calls:.2f}" for method, calls in per_check.items())
    return Result(
        f"calls of the store a check, {name}",
        counting.calls.total() / checks,
        "",
        None,
        f"{writes:.2f} write; {listed}",
    )
