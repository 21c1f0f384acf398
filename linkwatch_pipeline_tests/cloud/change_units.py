"""What a change costs in DynamoDB's own words, beyond a check that sees none: its transition, its notice, the telling.

python -m linkwatch_pipeline_tests.cloud.change_units       # the line of docs/aws.md; some seconds
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from linkwatch_pipeline.adapters.store.dynamodb import CLIENT
from linkwatch_pipeline.domain.breaker import BreakerRules
from linkwatch_pipeline.domain.mail_events import MailEvent, MailEventKind
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline.use_cases.reconcile import reconcile_mail_events
from linkwatch_pipeline_tests.builders import MONDAY, a_run
from linkwatch_pipeline_tests.cloud.ministack import Cloud, started_ministack
from linkwatch_pipeline_tests.cloud.tables import make_table, store_on
from linkwatch_pipeline_tests.cloud.week_units import counting
from linkwatch_pipeline_tests.use_cases.office import Office
from linkwatch_pipeline_tests.virtual_clock import VirtualClock

TOLD = (MailEventKind.SEND, MailEventKind.DELIVERY)  # what SES tells of a mail that arrives


def units_of_a_change(cloud: Cloud, *, links: int) -> Counter[str]:
    """For one changed link, the mean over a run in which all of them change; and for a minute with nothing to do."""
    seen, clock = Counter[str](), VirtualClock(MONDAY + timedelta(hours=1))
    client = counting(cloud.client("dynamodb", config=CLIENT), "dynamodb", seen)
    store = store_on(client, make_table(cloud), clock=clock, page_items=None)
    office = Office(store, clock, breaker=BreakerRules(is_on=False))
    office.employ()
    ids = [f"handbook-{n:02}.example.gov-about-us" for n in range(links)]
    office.watch(**{name: f"https://{name.removesuffix('-about-us')}/about-us/how-we-work/" for name in ids})
    _run(office, ids, 200)
    quiet = _counted(seen, lambda: _run(office, ids, 200))
    changed = _counted(seen, lambda: _run(office, ids, 404)) + _counted(seen, lambda: _tell(office))
    changed.subtract(quiet)
    assert len(office.provider.told) == links
    idle = _counted(seen, lambda: (any(store.runs(open_only=True)), office.deliver()))
    units = {f"{kind} of a change": changed[kind] / links for kind in ("write units", "read units")}
    return Counter(units | {"read units of an idle minute": idle["read units"]})


def _run(office: Office, ids: list[str], status: int) -> None:
    """The week's run, an hour after it was due; the next week comes after it."""
    office.run(dict.fromkeys(ids, status), run=a_run(office.clock.now() - timedelta(hours=1)))
    office.clock.advance(WEEK)


def _tell(office: Office) -> None:
    """Send what is due, and bring what SES tells of it, one event a message."""
    office.deliver()
    for kind in TOLD:
        for notice in list(office.store.notices()):
            assert notice.provider_id is not None
            event = MailEvent(
                kind=kind,
                mail_id=notice.mail_id,
                provider_id=notice.provider_id,
                at=office.clock.now(),
                recipients=("docs-team@example.com",) if kind is MailEventKind.DELIVERY else (),
            )
            assert reconcile_mail_events(office.store, [event]).unmatched == ()


def _counted(seen: Counter[str], work: Callable[[], object]) -> Counter[str]:
    seen.clear()
    work()
    return Counter(seen)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, started_ministack(Path(folder)) as cloud:
        for name, units in units_of_a_change(cloud, links=60).items():
            print(f"| {name} | {units:.2f} |")


if __name__ == "__main__":
    main()
