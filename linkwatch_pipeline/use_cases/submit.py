"""Take URLs from people who are not operators (SPEC 12.3): they name a page and a team that exists, nothing else.

A URL that no fetch policy would ever admit is refused at once, with the reason. Names are not looked up and nothing is
fetched here; every address is judged again when it is dialled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from linkwatch_pipeline.domain.errors import DamagedRecord, InvalidInput, StaleWrite
from linkwatch_pipeline.domain.handbook import refuse_private_name, scanned_link_id, scanned_link_ids, shown_reference
from linkwatch_pipeline.domain.links import Link, check_team
from linkwatch_pipeline.domain.tables import Schema, Table, TableRow
from linkwatch_pipeline.domain.urls import RefusedUrl, Url, parse_url
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.damage import unless_one_of
from linkwatch_pipeline.use_cases.import_links import noting, watched_by_url
from linkwatch_pipeline.use_cases.register import ATTEMPTS

SCHEMA = Schema(fields=("url", "owner"), required=("url",))


class JudgeUrl(Protocol):
    """Whether a fetch policy would ever look this URL up."""

    def __call__(self, url: Url, /) -> None:
        """Return if it may be visited. Raises RefusedUrl."""
        ...


class Verdict(StrEnum):
    """What became of a submission."""

    ACCEPTED = "accepted"
    WATCHED = "already watched"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One row's fate.

    `url` is for people to read: canonical unless refused, never with a password, '' if none is given. `link` watches
    it now, None if refused; `reason` says why then.
    """

    line: int
    url: str
    verdict: Verdict
    link: Link | None = None
    reason: str = ""


def submit_urls(
    store: Store, table: Table, *, owner: str | None = None, judge_url: JudgeUrl, now: datetime
) -> list[Submission]:
    """Watch the URLs that can be accepted, in one write; the fate of every row, in order.

    A URL that is watched already stays as it is, whoever submits it; one that was retired is refused, since somebody
    decided that.

    Args:
        owner: whose the rows without an owner are; None refuses those.
        now: aware UTC.
    Raises: InvalidInput (unknown or missing columns), StaleWrite, StoreError. Nothing is written then.
    """
    if owner is not None:
        check_team(owner)
    table = SCHEMA.read(table)
    if table.problems:
        told = "; ".join(f"{problem.field}: {problem.problem.rstrip('.')}" for problem in table.problems)
        raise InvalidInput(f"line {table.header_line}", told, "A submission has a url and an owner, and nothing else.")
    for _ in range(ATTEMPTS):
        decided = _Decisions(store, owner, now, judge_url, table.rows)
        accepted = [(s.link, None) for s in decided.submissions if s.verdict is Verdict.ACCEPTED and s.link is not None]
        try:
            if accepted:
                store.save_registry(links=accepted)
        except StaleWrite:
            continue
        return decided.submissions
    raise StaleWrite("the registry changes all the time; nothing was written, try again later.")


class _Decisions:
    """What becomes of each row, with the store as it is now."""

    def __init__(
        self, store: Store, owner: str | None, now: datetime, judge_url: JudgeUrl, rows: Sequence[TableRow]
    ) -> None:
        self._store = store
        self._owner = owner
        self._now = now
        self._known_teams: dict[str, bool] = {}
        self._taken: set[str] = set()
        self._accepted: dict[str, Link] = {}
        judged = [(row, _judged(row, judge_url)) for row in rows]
        urls = {str(url) for _, url in judged if isinstance(url, Url)}
        skipped: list[DamagedRecord] = []
        first_ids, known = {scanned_link_id(url) for url in urls}, dict[str, Link]()
        links = noting(store.links(damaged=unless_one_of(urls, skipped)), first_ids, known)
        self._watched: Mapping[str, Sequence[Link]] = watched_by_url(links, urls)
        # Of a link that is damaged not even the id is known.
        self._free_ids = first_ids.difference(known) if not skipped else set[str]()
        self.submissions = [self._decide(row, url) for row, url in judged]

    def _decide(self, row: TableRow, url: Url | str) -> Submission:
        if isinstance(url, str):
            return _refused(row, url)
        problem = self._owner_problem(row)
        if problem is not None:
            return _refused(row, problem)
        return self._watch(row, url)

    def _owner_problem(self, row: TableRow) -> str | None:
        team = self._team(row)
        if team is None:
            return "owner: is missing"
        try:
            check_team(team)
        except InvalidInput as refused:
            return f"{refused.field}: {refused.problem}"
        if team not in self._known_teams:
            self._known_teams[team] = self._store.get_owner(team) is not None
        return None if self._known_teams[team] else f"owner: there is no owner {team!r}"

    def _team(self, row: TableRow) -> str | None:
        return row.cells["owner"].strip() if "owner" in row.cells else self._owner

    def _watch(self, row: TableRow, url: Url) -> Submission:
        text = str(url)
        stored = self._watched.get(text, ())
        watching = next((link for link in stored if link.retired_at is None), None)
        if watching is not None:
            return Submission(line=row.line, url=text, verdict=Verdict.WATCHED, link=watching)
        if stored:
            return _refused(row, f"it was retired (link {stored[0].id}); an operator may register it again")
        if text in self._accepted:
            return Submission(line=row.line, url=text, verdict=Verdict.WATCHED, link=self._accepted[text])
        link = Link(
            id=self._free_id(text),
            url=text,
            host=url.host,
            owner=self._team(row),
            active_since=self._now,
            allocations={},
        )
        self._accepted[text] = link
        return Submission(line=row.line, url=text, verdict=Verdict.ACCEPTED, link=link)

    def _free_id(self, url: str) -> str:
        untaken = (i for i in scanned_link_ids(url) if i not in self._taken)
        link_id = next(i for i in untaken if i in self._free_ids or self._store.get_link(i) is None)
        self._taken.add(link_id)
        return link_id


def _judged(row: TableRow, judge_url: JudgeUrl) -> Url | str:
    """The row's URL, or why the row is refused."""
    for problem in row.problems:
        return f"{problem.field}: {problem.problem}"
    try:
        url = parse_url(row.cells["url"].strip())
        refuse_private_name(url)
        judge_url(url)
    except RefusedUrl as refused:
        return refused.problem
    return url


def _refused(row: TableRow, reason: str) -> Submission:
    shown = shown_reference(row.cells.get("url", "").strip())
    return Submission(line=row.line, url=shown, verdict=Verdict.REFUSED, reason=reason)
