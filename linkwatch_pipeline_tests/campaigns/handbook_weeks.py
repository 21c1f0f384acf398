"""A real handbook, watched for four weeks through the Dagster assets over real TLS, against an oracle.

    python -m linkwatch_pipeline_tests.campaigns.handbook_weeks

plays the whole 18F handbook, if it lies beside the repository, and prints the section of docs/performance.md.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.fetch.policy import FixturePolicy, PublicPolicy
from linkwatch_pipeline.adapters.handbook.reader import HandbookReader
from linkwatch_pipeline.adapters.home import FixtureMark
from linkwatch_pipeline.bootstrap import App, build_app, make_home
from linkwatch_pipeline.domain.fetching import TOTAL_DEADLINE
from linkwatch_pipeline.domain.handbook import FoundUrl, ScanResult
from linkwatch_pipeline.domain.owner_map import parse_owner_map
from linkwatch_pipeline.domain.runs import JobRecord, Run
from linkwatch_pipeline.domain.scanned_links import ScanChange
from linkwatch_pipeline.domain.timestamps import format_seconds, parse_week
from linkwatch_pipeline.domain.transitions import escaped_id
from linkwatch_pipeline.entrypoints.cli.run import run_week
from linkwatch_pipeline.use_cases.register import set_owner, update_link
from linkwatch_pipeline.use_cases.release import release_run
from linkwatch_pipeline.use_cases.scan import register_scan, scan_paths
from linkwatch_pipeline_tests.bench.result import machine
from linkwatch_pipeline_tests.campaigns.fates import MARKER, SIGN_IN, WEEKS, Script, host_of, write_script
from linkwatch_pipeline_tests.campaigns.oracle import Oracle, Seen, Told, Week
from linkwatch_pipeline_tests.campaigns.pace import Pace, WeekLog
from linkwatch_pipeline_tests.world import WorldProcess

HANDBOOK = Path(__file__).resolve().parents[3] / "shared" / "handbook-18f"
_EVERYBODY = "docs-team"


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How the weeks are played.

    `cooldown` and `service` (on average) are seconds. `throttling` hosts answer 429 to every first request of one week;
    of the others, only those with at most `most_busy` pages ever ask for a pause. On the busiest hosts one quiet page
    in `sign_in_one_in` leads to the sign-in host.
    """

    cooldown: float
    service: float
    throttling: int
    most_busy: int
    sign_in_one_in: int
    concurrency: int = 20
    batches: int = 8


WHOLE = Scale(cooldown=0.05, service=0.05, throttling=2, most_busy=30, sign_in_one_in=3)


class _Policy(FixturePolicy):
    """Some pages keep silent for ever, which costs a week this long; nothing less is safe on a machine that stalls."""

    deadline = TOTAL_DEADLINE


@dataclass
class RunEnds:
    """`ports.Progress`: when the last job of each run ended, in the machine's monotonic seconds."""

    at: dict[str, float] = field(default_factory=dict)

    def job_ended(self, job: JobRecord, end: str) -> None:
        self.at[job.run_id] = SystemClock().monotonic()

    def note(self, text: str) -> None:
        """Not asked."""


@dataclass
class HandbookWeeks:
    """A home that watches a handbook, the world it visits, and what should come of it."""

    app: App
    world: WorldProcess
    scale: Scale
    script: Script
    found: Mapping[str, FoundUrl]
    links: Mapping[str, str]
    oracle: Oracle
    mails: dict[str, bytes] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)

    def play(self, number: int) -> tuple[Week, list[Pace]]:
        """One week: run, compared with the oracle in everything, delivered. The paces of its runs."""
        self.world.week = number
        monday = parse_week(WEEKS[number])
        began, ends = SystemClock().monotonic(), RunEnds()
        runs = run_week(self.app.with_progress(ends), monday)
        week = self.oracle.play(number)
        self.told += week.told
        self._compare_records(runs, week)
        log = WeekLog(self.script, self.world.log, number)
        self._compare_visits(log, runs, week)
        self._deliver_and_compare_mails(number)
        starts = [began, *(ends.at[run.run_id] for run in runs)]
        return week, [
            log.pace(self.scale.cooldown, self.scale.concurrency, since=since, until=ends.at[run.run_id])
            for since, run in zip(starts, runs, strict=False)
        ]

    def _compare_records(self, runs: Sequence[Run], week: Week) -> None:
        store = self.app.store
        assert {run.run_id: (run.state.value, dict(run.totals.by_end) if run.totals else {}) for run in runs} == {
            run_id: ("closed", dict(ends)) for run_id, ends in week.ends.items()
        }
        seen = [o for run in runs for o in store.observations(run_id=run.run_id)]
        observed = [Seen(o.run_id or "", o.link_id, o.sequence, o.outcome.value, o.status) for o in seen]
        assert differences(observed, week.seen) == []
        standing = {link.id: (link.state.value, link.version, link.last_sequence) for link in store.links()}
        expected = {id_: (e.state, e.version, e.last_sequence) for id_, e in self.oracle.links.items()}
        assert differences(standing.items(), expected.items()) == []
        run_of = {o.job_id: o.run_id for o in store.observations()}
        changes = [
            (t.id, t.link_id, t.from_state.value, t.to_state.value, run_of[t.job_id], t.sequence)
            for t in store.transitions()
        ]
        assert differences(changes, [_without_status(told) for told in self.told]) == []

    def _compare_visits(self, log: WeekLog, runs: Sequence[Run], week: Week) -> None:
        assert log.rude_visits(self.scale.cooldown) == []
        unheard = {url for url in week.asked if host_of(url) in (self.script.down, self.script.expired)}
        expected = Counter({url: n for url, n in week.asked.items() if url not in unheard})
        for job in (job for run in runs for job in self.app.store.jobs(run.run_id)):
            if job.deferrals:  # its redirect was followed again
                expected[self.found_url(job.link_id)] += job.deferrals
        asked = log.asked()
        unasked = differences(asked.elements(), (expected + _heard(asked, unheard)).elements())
        assert unasked == [], unasked

    def _deliver_and_compare_mails(self, number: int) -> None:
        """Every notice became one mail to the right people; earlier mails are as they were.

        A week in which very much breaks at once, as the first one, is held; somebody looks and releases it.
        """
        app = self.app.in_week(parse_week(WEEKS[number]))
        app.deliver()
        for run in [run for run in app.store.runs() if run.is_held]:
            release_run(app.store, run.run_id, by="campaign", now=app.clock.now())
        app.deliver()
        notices = {notice.transition_id: notice for notice in self.app.store.notices()}
        assert sorted(notices) == sorted(told.transition_id for told in self.told)
        mails = {file.name: file.read_bytes() for file in self.app.home.mail.iterdir()}
        assert sorted(mails) == sorted(f"{escaped_id(told.transition_id)}.eml" for told in self.told)
        assert {name: mails[name] for name in self.mails} == self.mails
        for told in self.told:
            notice = notices[told.transition_id]
            assert (notice.status.value, notice.attempts, notice.run_id) == ("sent", 1, told.run_id)
            name = f"{escaped_id(told.transition_id)}.eml"
            if name not in self.mails:
                self._compare_mail(told, message_from_bytes(mails[name], policy=policy.default))
        self.mails = mails

    def _compare_mail(self, told: Told, mail: EmailMessage) -> None:
        found = self.found[self.found_url(told.link_id)]
        owner, *others = dict.fromkeys(team_of(place.file) for place in found.places)
        assert _addresses(mail, "To") == [address_of(owner)], told
        assert _addresses(mail, "Cc") == sorted(map(address_of, others)), told
        headline = "Broken" if told.to_state == "broken" else "Reachable again"
        subject = str(mail["Subject"]).strip()
        assert subject == f"[linkwatch] {headline}: {told.link_id}", subject
        part = mail.get_body(("plain",))
        assert part is not None
        rows = [" ".join(line.split()) for line in part.get_content().splitlines()]
        wanted = [f"Link: {told.link_id}", f"URL: {found.url}", f"Owner: {owner}", f"Transition: {told.transition_id}"]
        wanted += [f"State: {told.to_state} (was {told.from_state})"]
        assert set(wanted) <= set(rows), (wanted, rows)
        text = " ".join(rows)
        places = [f"{place.file}, line {place.line}" for place in found.places[:20]]
        for words in (*places, f"the answer was {told.status} ", f"Checked at: {told.run_id[:10]} 09:"):
            assert words in text, (words, text)

    def found_url(self, link_id: str) -> str:
        return next(url for url, id_ in self.links.items() if id_ == link_id)


@contextmanager
def watched_handbook(folder: Path, handbook: Path, scale: Scale) -> Iterator[HandbookWeeks]:
    """Scan a handbook, write its script, open its world, and register everything with owners by folder."""
    result = scan_paths([handbook], reader=HandbookReader(), judge_address=PublicPolicy().judge_address)
    assert result.problems == ()
    found = {each.url: each for each in result.found}
    script = write_script(
        sorted(found),
        throttling=scale.throttling,
        most_busy=scale.most_busy,
        sign_in_one_in=scale.sign_in_one_in,
        service=scale.service,
    )
    (folder / "world").mkdir(parents=True)
    with WorldProcess(script.hosts, folder / "world") as world:
        pairs = tuple(address for pair in world.map.hosts.values() for address in pair)
        home = make_home(folder / "home", env={}, fixture=FixtureMark(pairs=pairs, story=True))
        with home.settings_file.open("a") as settings:
            settings.write(f"\ncooldown_seconds = {scale.cooldown}\nbatches = {scale.batches}\n")
            settings.write(f"concurrency = {scale.concurrency}\n")
        parts: dict[str, Any] = {"policy": _Policy(pairs), "resolver": world.resolver, "ssl_context": world.ssl_context}
        with build_app(home.folder, env={}, **parts) as app:
            links = _register(app, result, script)
            yield HandbookWeeks(app, world, scale, script, found, links, Oracle(script, links))


def owners_by_folder(result: ScanResult) -> str:
    """A map in the manner of CODEOWNERS: each folder of pages has a team, the rest belongs to everybody."""
    files = {place.file for found in result.found for place in found.places}
    folders = sorted({file.split("/")[1] for file in files if file.count("/") > 1})
    return "\n".join([f"* {_EVERYBODY}", *(f"/pages/{folder}/ {folder}-team" for folder in folders)])


def team_of(file: str) -> str:
    """Whose a file is, by its folder."""
    return f"{file.split('/')[1]}-team" if file.count("/") > 1 else _EVERYBODY


def address_of(team: str) -> str:
    return f"{team}@example.com"


def differences(got: Iterable[object], expected: Iterable[object]) -> list[str]:
    """What is there and should not be (+), or is missing (-), repetitions included; a few of them."""
    have, want = Counter(got), Counter(expected)
    return [f"+ {item}" for item in have - want][:5] + [f"- {item}" for item in want - have][:5]


def _register(app: App, result: ScanResult, script: Script) -> dict[str, str]:
    before = parse_week(WEEKS[0]) - timedelta(days=3)
    owners = parse_owner_map(owners_by_folder(result))
    for team in owners.teams:
        set_owner(app.store, team=team, address=address_of(team))
    summary = register_scan(app.store, result, owners=owners, now=before)
    assert {change: len(ids) for change, ids in summary.ids.items()} == {ScanChange.REGISTERED: len(result.found)}
    links = {link.url: link.id for link in app.store.links()}
    for url, fate in script.fates.items():
        if fate.has_marker:
            update_link(app.store, link_id=links[url], marker=MARKER, now=before)
    return links


def _without_status(told: Told) -> tuple[object, ...]:
    return (told.transition_id, told.link_id, told.from_state, told.to_state, told.run_id, told.sequence)


def _heard(asked: Counter[str], urls: set[str]) -> Counter[str]:
    return Counter({url: n for url, n in asked.items() if url in urls})


def _addresses(mail: EmailMessage, header: str) -> list[str]:
    return sorted(address.addr_spec for address in mail[header].addresses) if mail[header] else []


def main() -> int:
    if not HANDBOOK.is_dir():
        print("the 18F handbook does not lie beside the repository (../shared/handbook-18f)", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder, watched_handbook(Path(folder), HANDBOOK, WHOLE) as weeks:
        print(report_of(weeks, began=format_seconds(SystemClock().now())))
    return 0


def report_of(weeks: HandbookWeeks, *, began: str) -> str:
    """Play all weeks and tell about them in Markdown."""
    hosts = Counter(map(host_of, weeks.links))
    [(busiest, most)] = hosts.most_common(1)
    lines = [
        f"{began}, {machine()}: {len(weeks.links)} URLs on {len(hosts)} hosts, {most} of them on `{busiest}`; "
        f"{sum(host == SIGN_IN for host, _ in weeks.script.hops)} lead to one sign-in host. Cooldown "
        f"{weeks.scale.cooldown:g} s, concurrency {weeks.scale.concurrency}, real TLS.",
        "",
        "| Week, run | Visits (hops) | Took | Bound | Ratio | Notices |",
        "|---|---|---|---|---|---|",
    ]
    for number, name in enumerate(WEEKS):
        week, paces = weeks.play(number)
        for retry, pace in enumerate(paces):
            run = f"{name}, retry {retry}" if retry else name
            lines.append(
                f"| {run} | {pace.visits} ({pace.hops}) | {pace.took:.2f} s "
                f"| {pace.bound:.2f} s, by {_decides(pace)} | {pace.ratio:.3f} | {'' if retry else len(week.told)} |"
            )
    return "\n".join(lines)


def _decides(pace: Pace) -> str:
    return f"`{pace.host}`" if pace.busiest >= pace.shared else "all work over the slots"


if __name__ == "__main__":
    sys.exit(main())
