"""Drills of silence: the checker without a network, the daemon that is killed, the check that stopped itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from linkwatch_pipeline.adapters.alarms.memory_file import AlarmFile
from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.home import find_home
from linkwatch_pipeline.bootstrap import App, build_app
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline.entrypoints.cli.run import run_week
from linkwatch_pipeline.use_cases.release import discard_run, release_run
from linkwatch_pipeline_tests.builders import MONDAY, RUN_ID, a_run, after
from linkwatch_pipeline_tests.drills import process
from linkwatch_pipeline_tests.drills.account import Account
from linkwatch_pipeline_tests.drills.desk import Desk, desk
from linkwatch_pipeline_tests.gates.busy_week import LINKS_PER_HOST, busy_world, miscounted, records
from linkwatch_pipeline_tests.use_cases.office import Office
from linkwatch_pipeline_tests.virtual_clock import VirtualClock

SECONDS = 250  # of patience with a process
HOSTS = 12


def network_lost_and_released(folder: Path, account: Account) -> None:
    """The checker loses its network in mid-run; on-call finds that what broke before is true, and releases it."""
    with desk(folder) as home:
        _lose_network(home, account)
        account.step("on-call looks: the break was seen before the network went; 'linkwatch release-notices'")
        with home.open() as app:
            account.check("notices released", release_run(app.store, RUN_ID, by="ops", now=home.clock.now()).notices, 1)
        home.live(timedelta(minutes=10))
        account.check("notices that arrived", dict(home.arrived()), {"host-00:2": 1})
        account.check("what on-call was told", home.told(), ["unhealthy", "still_unhealthy", "recovered"])


def network_lost_and_discarded(folder: Path, account: Account) -> None:
    """The same; on-call does not trust the run, and discards its notices."""
    with desk(folder) as home:
        _lose_network(home, account)
        account.step("on-call trusts nothing of this run; 'linkwatch discard-notices'")
        with home.open() as app:
            decided = discard_run(app.store, RUN_ID, by="ops", why="our network", now=home.clock.now())
            account.check("notices discarded", decided.notices, 1)
        home.live(timedelta(minutes=10))
        account.check("notices that arrived", dict(home.arrived()), {})
        account.check("where the notice stands", home.statuses(), {"discarded": 1})
        account.check("what on-call was told", home.told(), ["unhealthy", "still_unhealthy", "recovered"])


def _lose_network(home: Desk, account: Account) -> None:
    home.clock = VirtualClock(MONDAY - WEEK + timedelta(minutes=5))
    names = {f"host-{number:02d}": f"https://host-{number:02d}.example.com/" for number in range(HOSTS)}
    with home.open() as app:
        office = Office(app.store, clock=home.clock)
        office.employ()
        office.watch_since(MONDAY - WEEK, **names)
        account.step(f"a week in which {HOSTS} hosts are well")
        office.run(dict.fromkeys(names, 200), run=a_run(MONDAY - WEEK))
        home.clock.advance(WEEK)
        account.step("a week later one page is gone, and then nobody answers any more")
        office.run({name: 404 if name == "host-00" else None for name in names})
    account.check("what health found", home.look(), ["run_suspect"])
    account.check("what on-call was told", home.told(), ["unhealthy"])
    account.step("a day goes by, and nobody decides")
    home.live(timedelta(days=1, minutes=5), every=timedelta(hours=2))
    account.check("notices that arrived", dict(home.arrived()), {})
    account.check("where the notice stands", home.statuses(), {"held": 1})
    account.check("what on-call was told", home.told(), ["unhealthy", "still_unhealthy"])


def daemon_killed_on_monday(folder: Path, account: Account) -> None:
    """The process that runs the week is killed on Monday 09:05; `resume` goes on with it at 09:40."""
    with busy_world(folder / "world", hosts=4, throttles=False, in_steps_of=4) as world, desk(folder) as home:
        world.make_home(home.folder, registered_at=MONDAY - timedelta(days=1), story=False)
        env = {"LINKWATCH_OPS_WEBHOOK": home.on_call.url}
        world.answer_up_to(1)
        running = process.start("run", home.folder, now=after(minutes=4), env=env)
        world.wait_for_visits(running, 4 + 1)  # so that a host was visited twice: its first visit is recorded
        running.kill()
        running.wait(SECONDS)
        account.step("Monday 09:05: the process is killed with kill -9 in the middle of the run")
        with _at(home, env, minutes=20) as app:
            account.check("what health found at 09:20", _look(app), ["run_stalled"])
        with _at(home, env, minutes=35) as app:
            account.check("what health found at 09:35", _look(app), ["run_stalled", "run_late"])
            seen = len(list(app.store.observations()))
            jobs = 4 * LINKS_PER_HOST
            account.check("observations so far, some and not all", 0 < seen < jobs, True)
        account.check("what on-call was told", home.told(), ["unhealthy", "unhealthy"])
        world.answer_up_to(LINKS_PER_HOST - 1)
        account.step(f"09:40: 'linkwatch resume {RUN_ID}'")
        with _at(home, env, minutes=40) as app:
            run_week(app, MONDAY)
            run = app.store.get_run(RUN_ID)
            assert run is not None
            account.check("counters that differ from the rows", miscounted(app.store, run), [])
            account.check("observations, each link once", len(list(app.store.observations())), jobs)
            app.deliver()
            account.check("what health found", _look(app), [])
            notices, mails = list(app.store.notices()), list(app.home.mail.iterdir())
            account.check("mails for the broken links, one each", len(mails), len(notices))
            left = records(app.store, MONDAY)
            account.step("the week is materialised again")
            run_week(app, MONDAY)
            app.deliver()
            account.check("nothing changed", records(app.store, MONDAY) == left, True)
            account.check("mails", len(list(app.home.mail.iterdir())), len(mails))
        account.check("what on-call was told", home.told(), ["unhealthy", "unhealthy", "recovered"])


@contextmanager
def _at(home: Desk, env: dict[str, str], *, minutes: int) -> Iterator[App]:
    """The home at so many minutes past Monday 09:00, in real speed from then on."""
    clock = process.clock_from(after(minutes=minutes))
    with build_app(home.folder, env=env, clock=clock) as app:
        yield app


def _look(app: App) -> list[str]:
    findings = app.look()
    app.tell(findings)
    return [finding.code for finding in findings]


def check_itself_stopped(folder: Path, account: Account) -> None:
    """`linkwatch health --watch` is killed; the watchdog, another process, notices."""
    with desk(folder) as home:
        env = {**os.environ, "LINKWATCH_OPS_WEBHOOK": home.on_call.url}
        linkwatch = [str(Path(sys.executable).parent / "linkwatch"), "--home", str(home.folder), "health"]
        watching = subprocess.Popen([*linkwatch, "--watch"], env=env, stdout=subprocess.DEVNULL)
        _wait_for_heartbeat(home.folder, watching)
        account.step("'linkwatch health --watch' runs")
        dog = subprocess.run([*linkwatch, "--watchdog"], env=env, stdout=subprocess.PIPE, timeout=SECONDS, check=False)
        account.check("'linkwatch health --watchdog'", (dog.returncode, dog.stdout.decode().strip()), (0, "healthy"))
        watching.kill()
        watching.wait(SECONDS)
        account.step("it is killed with kill -9, and eleven minutes go by")
        later = VirtualClock(SystemClock().now() + timedelta(minutes=11))
        with build_app(home.folder, env=env, clock=later) as app:
            for _ in range(3):
                finding, _told = app.watch_the_watcher()
                assert finding is not None
                account.check("what the watchdog found", finding.code, "heartbeat_missing")
                later.advance(timedelta(minutes=5))
            account.check("what on-call was told in three looks", home.told(), ["unhealthy"])
            account.check("by whom", home.on_call.told[0]["source"], "watchdog")
            account.step("the check is started again")
            app.tell(app.look())
            app.watch_the_watcher()
        account.check("what on-call was told", home.told(), ["unhealthy", "recovered"])


def _wait_for_heartbeat(folder: Path, watching: subprocess.Popen[bytes]) -> None:
    memory, clock = AlarmFile(find_home(folder).alarm_memory), SystemClock()
    deadline = clock.monotonic() + SECONDS
    while memory.read().looked_at is None:
        assert clock.monotonic() < deadline, "it never looks"
        try:
            watching.wait(timeout=0.02)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(f"it ended with status {watching.returncode}")
