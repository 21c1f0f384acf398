"""What a week costs on AWS, from measured units and list prices: python deploy/cost.py [--links N --concurrency N]

It prints the table of docs/aws.md, in US dollars. Nothing here was billed: no account was used. Where a number comes
from stands beside it; `assumed` ones are to be replaced by what a real account shows.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

MILLION = 1_000_000
WEEKS_A_MONTH = 52 / 12
MINUTES_A_WEEK = 7 * 24 * 60


class Price(NamedTuple):
    """US dollars for one unit, us-east-1, without the free tier."""

    dollars: float
    source: str


# Third-party pages: look the prices up again before you quote them.
PRICES = {
    "write unit": Price(0.625 / MILLION, "airbyte.com, 21 Jul 2025"),
    "read unit": Price(0.125 / MILLION, "airbyte.com, 21 Jul 2025"),
    "SQS request": Price(0.40 / MILLION, "cloudburn.io, 14 Mar 2026"),
    "GB-second, arm64": Price(0.0000133334, "cloudchipr.com, 2024; the same in a note of 11 May 2026"),
    "invocation": Price(0.20 / MILLION, "cloudchipr.com, 2024"),
    "mail": Price(0.10 / 1000, "acecloudinterviews.com, undated"),
    "GB of logs": Price(0.50, "general knowledge"),
    "schedule's call": Price(1.00 / MILLION, "general knowledge"),
    "SNS publish": Price(0.50 / MILLION, "general knowledge"),
    "metric request": Price(0.01 / 1000, "general knowledge"),
    "alarm, a month": Price(0.10, "general knowledge"),
    "metric, a month": Price(0.30, "general knowledge"),
    "GB stored, a month": Price(0.25, "an older page of AWS"),
    "GB of point-in-time recovery, a month": Price(0.20, "general knowledge"),
    "NAT gateway and its address, an hour": Price(0.045 + 0.005, "general knowledge"),
    "GB through NAT": Price(0.045, "general knowledge"),
}

# Measured on ministack: python -m linkwatch_pipeline_tests.cloud.week_units (180 links on 30 hosts, 29 Nov 2026).
WRITE_UNITS = 12.44
READ_UNITS = 8.61
MESSAGES_SENT = 0.85
# Likewise: python -m linkwatch_pipeline_tests.cloud.change_units (60 links, all changing). Of a change beyond its
# check: transition and notice, sending, and what SES tells of it; of a tick and a notifier that find nothing, together.
CHANGE_WRITE_UNITS = 9.08
CHANGE_READ_UNITS = 24.47
IDLE_READ_UNITS = 7
# From the templates and from what the functions do; linkwatch_pipeline_tests/deploy/test_cost.py counts them.
ALARMS = 10
METRICS = 9  # of the function health, each put by a request of its own at each look
MEMORY_GB = 0.25
CALLS_A_MINUTE = 2  # the tick and the notifier
LOOKS_EVERY_MINUTES = 5
QUESTIONS_A_LOOK = 2  # whether the work queue and that of its dead letters are as they have to be
EVENTS_A_MAIL = 2  # of one that arrives: each a message through topic and queue, and a call
REQUESTS_A_MESSAGE = 3  # sent, received, deleted
MAPPINGS = 2
# Assumed, after SPEC 3.
CHECK_SECONDS = 2.0
CHANGED = 0.02  # of the links, each week; every change is mailed
LINKS_A_HOST = 6
LOG_KB = 0.5  # a line; a check writes one, each other call one
KB_FETCHED = 64  # of a response, at most
IDLE_SECONDS = 0.2  # of a tick or of a notifier that finds nothing, and of a call for an event of a mail
HEALTH_SECONDS = 1.0
HEALTH_READ_UNITS = 50
CHAIN_KB = 0.3  # of a host's item in a run, which each tick of an open run reads
KB_STORED = 20  # of a link: state, thirteen weeks of observations, jobs
POLLERS = 5  # of each mapping, each polling for 20 s


@dataclass(frozen=True)
class Load:
    """So many links a week, so many checks at once."""

    links: int
    concurrency: int

    @property
    def run_minutes(self) -> float:
        """Of a run that only the number of workers bounds."""
        return self.links * CHECK_SECONDS / self.concurrency / 60

    @property
    def mails(self) -> float:
        """In a week, if every change is a mail of its own."""
        return self.links * CHANGED

    @property
    def tick_read_units(self) -> float:
        return self.run_minutes * self.links / LINKS_A_HOST * CHAIN_KB / 4


def week(load: Load) -> dict[str, float]:
    """Dollars a week by what is paid for."""
    looks, events = MINUTES_A_WEEK / LOOKS_EVERY_MINUTES, load.mails * EVENTS_A_MAIL
    scheduled, idle = CALLS_A_MINUTE * MINUTES_A_WEEK + looks, CALLS_A_MINUTE * MINUTES_A_WEEK + events
    calls = load.links + scheduled + events
    seconds = load.links * CHECK_SECONDS + idle * IDLE_SECONDS + looks * HEALTH_SECONDS
    writes = load.links * WRITE_UNITS + load.mails * CHANGE_WRITE_UNITS
    reads = load.links * READ_UNITS + load.mails * CHANGE_READ_UNITS + load.tick_read_units
    reads += MINUTES_A_WEEK * IDLE_READ_UNITS + looks * HEALTH_READ_UNITS
    polls = MAPPINGS * POLLERS * 3 * MINUTES_A_WEEK
    stored_gb = load.links * KB_STORED / MILLION
    return {
        "DynamoDB writes": writes * _price("write unit"),
        "DynamoDB reads": reads * _price("read unit"),
        "DynamoDB storage and recovery": stored_gb
        * (_price("GB stored, a month") + _price("GB of point-in-time recovery, a month"))
        / WEEKS_A_MONTH,
        "SQS, work": load.links * (2 + MESSAGES_SENT) * _price("SQS request"),
        "SQS, polling empty queues": (polls + looks * QUESTIONS_A_LOOK) * _price("SQS request"),
        "Lambda, GB-seconds": seconds * MEMORY_GB * _price("GB-second, arm64"),
        "Lambda, invocations": calls * _price("invocation"),
        "schedules": scheduled * _price("schedule's call"),
        "mails and their events": load.mails * _price("mail")
        + events * (_price("SNS publish") + REQUESTS_A_MESSAGE * _price("SQS request")),
        "logs": calls * LOG_KB / MILLION * _price("GB of logs"),
        "putting numbers": looks * METRICS * _price("metric request"),
        "alarms and metrics": (ALARMS * _price("alarm, a month") + METRICS * _price("metric, a month")) / WEEKS_A_MONTH,
    }


def nat(load: Load) -> float:
    """Dollars a week more, in the network profile egress."""
    hours = MINUTES_A_WEEK / 60 * _price("NAT gateway and its address, an hour")
    return hours + load.links * KB_FETCHED / MILLION * _price("GB through NAT")


def table(loads: list[Load]) -> list[str]:
    """The lines of a Markdown table."""
    costs = [week(load) for load in loads]
    heads = [f"{load.links:,} links, {load.concurrency} at once" for load in loads]
    totals = [sum(cost.values()) for cost in costs]
    rows = [(name, [cost[name] for cost in costs]) for name in costs[0]]
    rows += [("**a week**", totals), ("a month", [total * WEEKS_A_MONTH for total in totals])]
    rows += [("profile egress, more a week", [nat(load) for load in loads])]
    return [
        f"| dollars | {' | '.join(heads)} |",
        "|---|" + "---|" * len(loads),
        *(f"| {name} | {' | '.join(f'{value:,.2f}' for value in values)} |" for name, values in rows),
    ]


def prices() -> list[str]:
    """The lines of a Markdown table."""
    return [
        "| one | dollars | source |",
        "|---|---|---|",
        *(f"| {name} | {price.dollars:.10f}".rstrip("0") + f" | {price.source} |" for name, price in PRICES.items()),
    ]


def _price(unit: str) -> float:
    return PRICES[unit].dollars


def _at_least_one(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="cost.py", description="What a week costs on AWS, from list prices.")
    parser.add_argument("--links", type=_at_least_one, help="instead of 6,000 and 600,000")
    parser.add_argument("--concurrency", type=_at_least_one, default=20, help="checks at once")
    given = parser.parse_args(arguments)
    loads = [Load(given.links, given.concurrency)] if given.links else [Load(6000, 20), Load(600_000, 100)]
    try:
        print("\n".join([*table(loads), "", *prices()]), flush=True)
    except BrokenPipeError:  # whoever reads has seen enough; nothing is left to be flushed at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
