"""`make drills`: faults brought about on purpose, each step and verdict printed; or only those named.

    python -m linkwatch_pipeline_tests.drills smtp-down host-down

Real parts throughout: SQLite, mail server, HTTP, processes and `kill -9`. Hours pass in virtual time. Ends with
status 1 if a verdict is not as promised.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline_tests.drills import crash, mail, silence
from linkwatch_pipeline_tests.drills.account import Account, Drill
from linkwatch_pipeline_tests.interruptible import exit_code_of

DRILLS = (
    Drill("smtp-down", "The mail server is down for a day, then back", mail.smtp_down_for_a_day),
    Drill("ses-lost", "SES accepts, and its answer is lost", mail.ses_answer_lost),
    Drill("host-down", "300 links break at once on one host", mail.host_takes_300_links),
    Drill("crash-claim", "A sender dies between claim and send", crash.crash_between_claim_and_send),
    Drill("crash-send", "A sender dies between send and mark", crash.crash_between_send_and_mark),
    Drill("two-senders", "Two processes deliver at once", crash.two_senders_at_once),
    Drill("network-released", "The network is lost in mid-run; released", silence.network_lost_and_released),
    Drill("network-discarded", "The network is lost in mid-run; discarded", silence.network_lost_and_discarded),
    Drill("daemon-killed", "The daemon is killed on Monday 09:05", silence.daemon_killed_on_monday),
    Drill("check-stopped", "The five-minute check itself stops", silence.check_itself_stopped),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m linkwatch_pipeline_tests.drills")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(d.name for d in DRILLS)}; all without")
    wanted = parser.parse_args().names
    if unknown := set(wanted) - {drill.name for drill in DRILLS}:
        parser.error(f"there is no drill {', '.join(sorted(unknown))}")
    return exit_code_of(lambda: _play_all(wanted), if_interrupted="what the drill had begun is gone")


def _play_all(wanted: list[str]) -> int:
    failed = [drill.name for drill in DRILLS if drill.name in (wanted or [drill.name]) and not _play(drill)]
    print(f"failed: {', '.join(failed)}" if failed else "all as promised")
    return 1 if failed else 0


def _play(drill: Drill) -> bool:
    """Whether it went as promised."""
    print(f"{drill.name}: {drill.title}", flush=True)
    clock, account = SystemClock(), Account(tell=lambda text: print(text, flush=True))
    started = clock.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder:
            drill.play(Path(folder), account)
    except AssertionError as broken:
        print(f"  FAILED: {broken}", flush=True)
        return False
    print(f"  as promised: {account.checks} checks, {clock.monotonic() - started:.1f} s", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
