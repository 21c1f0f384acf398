"""Register many links from a table: all of them, or none and a word about every bad row (SPEC 6)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from linkwatch_pipeline.domain.errors import ConflictingContent, DamagedRecord, InvalidInput, StaleWrite
from linkwatch_pipeline.domain.links import (
    Link,
    Owner,
    Place,
    check_address,
    check_confirm,
    check_link_id,
    check_marker,
    check_team,
    check_url,
)
from linkwatch_pipeline.domain.tables import RowProblem, Schema, Table, TableRow
from linkwatch_pipeline.domain.urls import host_key
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.damage import unless_one_of
from linkwatch_pipeline.use_cases.register import ATTEMPTS, Change, Registered, registration

SCHEMA = Schema(
    fields=("link_id", "url", "owner", "notify", "expect", "confirm", "file", "line"),
    required=("link_id", "url", "owner"),
    aliases={"id": "link_id", "marker": "expect"},  # as `links --json` has them
)
MAX_FILE_CHARACTERS = 1024
_WHOLE_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What was done: the ids of the links by change in id order, the links as written, and the teams that are new.

    If there are `problems` (in line order), nothing was written.
    """

    ids: Mapping[Change, tuple[str, ...]] = field(default_factory=dict)
    written: tuple[Link, ...] = field(default=(), compare=False)
    owners: tuple[str, ...] = ()
    problems: tuple[RowProblem, ...] = ()

    def count(self, change: Change) -> int:
        return len(self.ids.get(change, ()))


def import_links(store: Store, table: Table, *, now: datetime) -> Imported:
    """Watch what the rows say, as `register_link` does it for each, in one write.

    A repetition changes nothing. Rows that differ only in `file` and `line` are one link with several places; places
    that are given replace those that the link had.

    Args: now: aware UTC.
    Raises: StaleWrite (somebody else wrote all the time), StoreError. Nothing is written then.
    """
    batch = _Batch(SCHEMA.read(table), now)
    for _ in range(ATTEMPTS):
        decided = _decide(store, batch)
        if decided.problems:
            return Imported(problems=tuple(sorted(decided.problems, key=lambda problem: problem.line)))
        try:
            _write(store, decided)
        except StaleWrite:
            continue
        return decided.summary()
    raise StaleWrite("the links of this file change all the time; nothing was written, try again later.")


@dataclass(frozen=True, slots=True)
class _Row:
    """The fields of a row that can be used; a whole row has all that is required."""

    line: int
    values: Mapping[str, Any]
    is_whole: bool

    @property
    def configuration(self) -> tuple[Any, ...]:
        return tuple(self.values.get(name) for name in _CONFIGURATION)


@dataclass(slots=True)
class _Decided:
    """What is to be written, or why nothing is."""

    owners: list[Owner] = field(default_factory=list)
    links: list[tuple[Registered, Link | None]] = field(default_factory=list)
    problems: list[RowProblem] = field(default_factory=list)

    @property
    def changed(self) -> list[tuple[Registered, Link | None]]:
        return [each for each in self.links if each[0].change is not Change.UNCHANGED]

    def summary(self) -> Imported:
        ids: dict[Change, list[str]] = defaultdict(list)
        for registered, _ in self.links:
            ids[registered.change].append(registered.link.id)
        return Imported(
            ids={change: tuple(sorted(done)) for change, done in ids.items()},
            written=tuple(registered.link for registered, _ in self.changed),
            owners=tuple(sorted(owner.team for owner in self.owners)),
        )


class _Batch:
    """The rows of the file by themselves: what they say, and where they contradict themselves or each other."""

    def __init__(self, table: Table, now: datetime) -> None:
        self.problems = list(table.problems)
        self.rows = [self._read(row) for row in table.rows]
        self.addresses: dict[str, tuple[str, int]] = {}  # of the teams that a row gives one, with its line
        self.links: dict[str, tuple[Link, int]] = {}  # by id, with the line of its first row
        self._now = now
        self._compare_owners()
        self._compare_urls()
        self._join()

    def _read(self, row: TableRow) -> _Row:
        values: dict[str, Any] = {}
        problems = list(row.problems)
        for name, text in row.cells.items():
            try:
                values[name] = _CHECKS[name](text)
            except InvalidInput as refused:
                problems.append(RowProblem(line=row.line, field=name, problem=f"{refused.problem}. {refused.mend}"))
        if ("file" in row.cells) != ("line" in row.cells):
            missing = "line" if "file" in row.cells else "file"
            problems.append(
                RowProblem(line=row.line, field=missing, problem="is missing; a place is a file and a line")
            )
        self.problems += problems
        return _Row(row.line, values, not problems and all(name in values for name in SCHEMA.required))

    def _compare_owners(self) -> None:
        for row in self.rows:
            team, address = row.values.get("owner"), row.values.get("notify")
            if team is None or address is None:
                continue
            first, line = self.addresses.setdefault(team, (address, row.line))
            if address != first:
                problem = f"owner {team!r} has the address {first} on line {line}; give one"
                self.problems.append(RowProblem(line=row.line, field="notify", problem=problem))

    def _compare_urls(self) -> None:
        seen: dict[str, tuple[str, int]] = {}
        for row in self.rows:
            link_id, url = row.values.get("link_id"), row.values.get("url")
            if link_id is None or url is None:
                continue
            first, line = seen.setdefault(url, (link_id, row.line))
            if link_id != first:
                problem = f"{url} is link {first!r} on line {line}; a URL is watched once"
                self.problems.append(RowProblem(line=row.line, field="url", problem=problem))

    def _join(self) -> None:
        firsts: dict[str, _Row] = {}
        places: dict[str, set[Place]] = defaultdict(set)
        for row in self.rows:
            if not row.is_whole:
                continue
            link_id = row.values["link_id"]
            first = firsts.setdefault(link_id, row)
            if row.configuration != first.configuration:
                differing = next(n for n in _CONFIGURATION if row.values.get(n) != first.values.get(n))
                problem = f"link {link_id!r} has another {differing} on line {first.line}"
                self.problems.append(RowProblem(line=row.line, field=differing, problem=problem))
            elif "file" in row.values:
                places[link_id].add(Place(file=row.values["file"], line=row.values["line"]))
        self.links = {link_id: (self._link(row, places[link_id]), row.line) for link_id, row in firsts.items()}

    def _link(self, row: _Row, places: Iterable[Place]) -> Link:
        return Link(
            id=row.values["link_id"],
            url=row.values["url"],
            host=host_key(row.values["url"]),
            owner=row.values["owner"],
            marker=row.values.get("expect"),
            confirm=row.values.get("confirm"),
            active_since=self._now,
            places=tuple(sorted(places, key=lambda place: (place.file, place.line))),
            allocations={},
        )


def _decide(store: Store, batch: _Batch) -> _Decided:
    """What the store has to say about the rows."""
    decided = _Decided(problems=list(batch.problems))
    _decide_owners(store, batch, decided)
    urls = {link.url for link, _ in batch.links.values()}
    known: dict[str, Link] = {}
    skipped: list[DamagedRecord] = []
    links = store.links(damaged=unless_one_of(urls, skipped))
    rivals = watched_by_url(noting(links, batch.links, known), urls)
    for link, line in batch.links.values():
        # One that is damaged was not among them, so it may be this.
        stored = known.get(link.id) or (store.get_link(link.id) if skipped else None)
        try:
            registered = registration(stored, link, rival_of=partial(_rival, rivals), now=link.active_since)
        except ConflictingContent as conflict:
            name = _conflicting_field(stored, link)
            decided.problems.append(RowProblem(line=line, field=name, problem=str(conflict)))
            continue
        decided.links.append((_with_places(registered, link), stored))
    return decided


def noting(links: Iterable[Link], wanted: Collection[str], known: dict[str, Link]) -> Iterator[Link]:
    """The links; those whose ids are wanted are kept, so that nobody has to ask for each again."""
    for link in links:
        if link.id in wanted:
            known[link.id] = link
        yield link


def _decide_owners(store: Store, batch: _Batch, decided: _Decided) -> None:
    known: dict[str, Owner | None] = {}
    for row in batch.rows:
        team = row.values.get("owner")
        if team is None:
            continue
        if team not in known:
            known[team] = store.get_owner(team)
            if known[team] is None and team in batch.addresses:
                decided.owners.append(Owner(team=team, address=batch.addresses[team][0]))
        problem = _owner_problem(team, known[team], row.values.get("notify"), batch.addresses)
        if problem is not None:
            decided.problems.append(RowProblem(line=row.line, field=problem[0], problem=problem[1]))


def _owner_problem(
    team: str, known: Owner | None, address: str | None, addresses: Collection[str]
) -> tuple[str, str] | None:
    """(field, problem), None if the row's owner and address are fine with what is stored."""
    if known is None:
        if team in addresses:
            return None
        return "owner", f"there is no owner {team!r}; give its address in 'notify', or run 'linkwatch owner'"
    if address is None or address == known.address:
        return None
    return "notify", (
        f"owner {team!r} has the address {known.address}; change it for all its links with "
        f"'linkwatch owner {team} {address}'"
    )


def _write(store: Store, decided: _Decided) -> None:
    changed = [(done.link, stored) for done, stored in decided.changed]
    if decided.owners or changed:
        store.save_registry(owners=decided.owners, links=changed)


def watched_by_url(links: Iterable[Link], urls: Collection[str]) -> Mapping[str, Sequence[Link]]:
    """The links that have one of these URLs, retired ones included, in the given order."""
    found: dict[str, list[Link]] = defaultdict(list)
    for link in links:
        if link.url in urls:
            found[link.url].append(link)
    return found


def _rival(watched: Mapping[str, Sequence[Link]], wanted: Link) -> Link | None:
    others = (link for link in watched.get(wanted.url, ()) if link.id != wanted.id)
    return next((link for link in others if link.retired_at is None), None)


def _with_places(registered: Registered, wanted: Link) -> Registered:
    """The link with its imported places anew; those that a scan found are the scan's."""
    scanned = [place for place in registered.link.places if place.scanned_for is not None]
    known = {(place.file, place.line) for place in scanned}
    new = [place for place in wanted.places if (place.file, place.line) not in known]
    places = tuple(sorted([*scanned, *new], key=lambda place: (place.file, place.line)))
    if not wanted.places or places == registered.link.places:
        return registered
    change = Change.UPDATED if registered.change is Change.UNCHANGED else registered.change
    return Registered(link=replace(registered.link, places=places), change=change)


def _conflicting_field(stored: Link | None, wanted: Link) -> str:
    """The field in which a link that cannot be registered differs from the stored one."""
    if stored is None or stored.url != wanted.url or stored.retired_at is not None:
        return "url"
    if stored.owner != wanted.owner:
        return "owner"
    return "expect" if stored.marker != wanted.marker else "confirm"


def _confirm(text: str) -> int | None:
    return check_confirm(_whole_number(text, "confirm"))


def _whole_number(text: str, name: str) -> int:
    if not _WHOLE_NUMBER.fullmatch(text.strip()):
        raise InvalidInput(name, f"{text[:40]!r} is not a count", "Give a number in plain digits.")
    return int(text)


def _line(text: str) -> int:
    line = _whole_number(text, "line")
    if line == 0:
        raise InvalidInput("line", "there is no line 0", "Lines count from 1.")
    return line


def _file(text: str) -> str:
    if len(text) > MAX_FILE_CHARACTERS or not text.isprintable():
        raise InvalidInput(
            "file", f"{text[:40]!r} is not a file's path", f"Give at most {MAX_FILE_CHARACTERS} printable characters."
        )
    return text


_CONFIGURATION = ("url", "owner", "expect", "confirm")
_CHECKS: Mapping[str, Callable[[str], object]] = {
    "link_id": lambda text: check_link_id(text.strip()),
    "url": lambda text: check_url(text.strip()),
    "owner": lambda text: check_team(text.strip()),
    "notify": lambda text: check_address(text.strip()),
    "expect": check_marker,
    "confirm": _confirm,
    "file": _file,
    "line": _line,
}
