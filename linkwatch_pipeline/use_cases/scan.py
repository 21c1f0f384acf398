"""Take the links out of a handbook and register them, with the places where they stand (SPEC 6). Nothing is fetched."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urljoin

from linkwatch_pipeline.domain.errors import InvalidInput, NotFound, StaleWrite
from linkwatch_pipeline.domain.handbook import (
    Aside,
    FileProblem,
    FoundLink,
    FoundUrl,
    ReadFile,
    ScanResult,
    Skipped,
    has_scanned_id,
    is_literal,
    read_reference,
    refuse_private_name,
    scanned_link_id,
    scanned_link_ids,
    shown_reference,
)
from linkwatch_pipeline.domain.links import Link, Place, check_url
from linkwatch_pipeline.domain.owner_map import OwnerMap
from linkwatch_pipeline.domain.urls import RefusedUrl, Url, host_key
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.register import owner_to_write

_ATTEMPTS = 20  # each fails only because another writer succeeded


class Reader(Protocol):
    """Reads the files of a handbook."""

    def read(self, paths: Sequence[Path], *, include: str | None, exclude: str | None) -> Iterator[ReadFile]:
        """Every file of a scanned kind under the paths, sorted within each.

        Args: include, exclude: regular expressions, searched in a file's path under its PATH; None takes all, none.
        Raises: InvalidInput (no such path, no or a hostile expression), MissingExtra.
        """
        ...


class JudgeAddress(Protocol):
    """Whether a literal address may be visited, as the fetch policy says."""

    def __call__(self, ip: str, port: int, /) -> None:
        """Return if it may. Raises RefusedUrl."""
        ...


class ScanChange(StrEnum):
    """What a scan did to a link."""

    REGISTERED = "registered"
    REVIVED = "revived"
    UPDATED = "updated"
    RETIRED = "retired"
    UNCHANGED = "unchanged"
    LEFT_RETIRED = "left retired"  # somebody retired it by hand: a scan does not overrule people


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanSummary:
    """The ids of the links by what was done to them, each in id order.

    `files_gone` are those in which retired links stood and that this scan did not read: deleted, or of another folder.
    """

    ids: dict[ScanChange, tuple[str, ...]]
    files_gone: tuple[str, ...] = ()

    def count(self, change: ScanChange) -> int:
        return len(self.ids.get(change, ()))


def scan_paths(
    paths: Sequence[Path],
    *,
    include: str | None = None,
    exclude: str | None = None,
    base_url: str | None = None,
    reader: Reader,
    judge_address: JudgeAddress,
) -> ScanResult:
    """Read a handbook.

    Args:
        base_url: where the top of the handbook is published; None leaves relative links out.
    Raises: InvalidInput, MissingExtra.
    """
    base = check_url(base_url, "base-url") if base_url is not None else None
    collected = _Collected(base, judge_address)
    for file in reader.read(paths, include=include, exclude=exclude):
        collected.add(file)
    return collected.result()


def register_scan(
    store: Store, result: ScanResult, *, owners: OwnerMap, notify: str | None = None, now: datetime, prune: bool = False
) -> ScanSummary:
    """Watch what a scan found.

    A URL that is watched already keeps its id, history and owner and gets its places anew; teams that use it too are
    noted. A repetition changes nothing.

    Args:
        owners: whose files are whose. All its teams must have an address, or be the one that `notify` is for.
        notify: the address of the map's only team, if that is new.
        prune: whether links that a scan registered for these teams, and this one did not find, are retired.
    Raises: NotFound (no such owner), InvalidInput (a file of nobody, nothing to compare with), ConflictingContent (the
        team has another address); nothing is written then.
    """
    for _ in range(_ATTEMPTS):
        _refuse_unknown_teams(store, owners, notify)
        new_owners = [owner_to_write(store, team, notify) for team in owners.teams]
        if prune and not result.files:
            raise InvalidInput("prune", "no file was read, so every link would be retired", "Look at PATH.")
        decided = _decide(store, result, _Scan(result, owners, now=now, prune=prune), prune=prune)
        try:
            store.save_registry(owners=[owner for owner in new_owners if owner is not None], links=decided.writes)
        except StaleWrite:
            continue
        return decided.summary(result.files)
    raise StaleWrite("the links of this scan change all the time; nothing was written, scan again later.")


def _refuse_unknown_teams(store: Store, owners: OwnerMap, notify: str | None) -> None:
    """All of a map's teams at once: a large handbook has dozens, and `notify` is for one."""
    unknown = [team for team in sorted(set(owners.teams)) if store.get_owner(team) is None]
    if len(owners.teams) > 1 and unknown and notify is None:
        commands = ", ".join(f"'linkwatch owner {shlex.quote(team)} ADDRESS'" for team in unknown)
        raise NotFound(f"there is no owner {', '.join(map(repr, unknown))}; nothing was written. Run {commands}.")


@dataclass(slots=True)
class _Decided:
    """What a scan does to each link, and what is to be written for it."""

    ids: dict[ScanChange, list[str]] = field(default_factory=lambda: defaultdict(list))
    writes: list[tuple[Link, Link | None]] = field(default_factory=list)

    def add(self, link_id: str, stored: Link | None, change: ScanChange, after: Link | None) -> None:
        self.ids[change].append(link_id)
        if after is not None:
            self.writes.append((replace(after, id=link_id), stored))

    def summary(self, files: Iterable[str]) -> ScanSummary:
        """Args: files: that were read."""
        retired = frozenset(self.ids.get(ScanChange.RETIRED, ()))
        stood_in = {p.file for _, stored in self.writes if stored and stored.id in retired for p in stored.places}
        return ScanSummary(
            ids={change: tuple(sorted(done)) for change, done in self.ids.items()},
            files_gone=tuple(sorted(stood_in.difference(files))),
        )


def _decide(store: Store, result: ScanResult, scan: _Scan, *, prune: bool) -> _Decided:
    watched = _watched_by_url(store)
    decided = _Decided()
    for found in result.found:
        stored = watched.get(found.url)
        link_id = stored.id if stored is not None else _free_id(store, found.url)
        decided.add(link_id, stored, *scan.found(found, stored))
    urls = {found.url for found in result.found}
    for link in watched.values() if prune else ():
        if link.url not in urls and link.places and link.retired_at is None:
            decided.add(link.id, link, *scan.vanished(link))
    return decided


class _Collected:
    """What was found so far."""

    def __init__(self, base: str | None, judge_address: JudgeAddress) -> None:
        self._base = base if base is None or base.endswith("/") else f"{base}/"
        self._judge_address = judge_address
        self._places: dict[str, set[tuple[str, int]]] = defaultdict(set)
        self._skipped: dict[tuple[str, int, str, str], Skipped] = {}
        self._asides: Counter[Aside] = Counter()
        self._files: list[str] = []
        self._problems: list[FileProblem] = []
        self._passed: list[FileProblem] = []

    def add(self, read: ReadFile) -> None:
        if read.passed is not None:
            self._passed.append(FileProblem(file=read.file, problem=read.passed))
            return
        if read.problem is not None:
            self._problems.append(FileProblem(file=read.file, problem=read.problem))
        if read.problem is None or read.links:
            self._files.append(read.file)
        base = urljoin(self._base, quote(read.file)) if self._base is not None else None
        for link in read.links:
            self._add_link(read.file, link, base)

    def _add_link(self, file: str, link: FoundLink, base: str | None) -> None:
        try:
            reference = read_reference(link.text, base=base)
            if isinstance(reference, Aside):
                self._asides[reference] += 1
                return
            self._judge(reference)
        except RefusedUrl as refused:
            text = shown_reference(link.text)
            skipped = Skipped(file=file, line=link.line, text=text, reason=refused.problem)
            self._skipped[file, link.line, text, refused.problem] = skipped
            return
        self._places[str(reference)].add((file, link.line))

    def _judge(self, url: Url) -> None:
        refuse_private_name(url)
        if is_literal(url.host):
            self._judge_address(url.host, url.port)

    def result(self) -> ScanResult:
        return ScanResult(
            found=tuple(
                FoundUrl(url=url, places=tuple(Place(file=file, line=line) for file, line in sorted(places)))
                for url, places in sorted(self._places.items())
            ),
            skipped=tuple(self._skipped[key] for key in sorted(self._skipped)),
            asides=dict(self._asides),
            files=tuple(self._files),
            problems=tuple(self._problems),
            passed=tuple(self._passed),
        )


class _Scan:
    """Decides what becomes of one link. A decision of None leaves it as it is."""

    def __init__(self, result: ScanResult, owners: OwnerMap, *, now: datetime, prune: bool) -> None:
        self._owners = {place.file: "" for found in result.found for place in found.places}
        for file in self._owners:
            self._owners[file] = owners.team_of(file)
        self._teams = frozenset(owners.teams)
        self._files = frozenset(result.files)
        self._unread = tuple(problem.file for problem in result.problems)
        self._now = now
        self._prune = prune

    def found(self, found: FoundUrl, stored: Link | None) -> tuple[ScanChange, Link | None]:
        places = tuple(replace(place, scanned_for=self._owners[place.file]) for place in found.places)
        teams = list(dict.fromkeys(self._owners[place.file] for place in found.places))
        if stored is None:
            return ScanChange.REGISTERED, self._new(found.url, places, teams)
        if stored.retired_at is not None:
            return self._found_again(stored, places, teams)
        after = self._used_by(stored, teams, places)
        return (ScanChange.UPDATED, after) if after != stored else (ScanChange.UNCHANGED, None)

    def _found_again(
        self, stored: Link, places: tuple[Place, ...], teams: Sequence[str]
    ) -> tuple[ScanChange, Link | None]:
        if stored.places or _registered_by_people(stored):
            return ScanChange.LEFT_RETIRED, None
        revived = replace(
            stored,
            owner=teams[0],
            also_used_by=tuple(sorted(teams[1:])),
            places=places,
            retired_at=None,
            active_since=self._now,
            config_version=stored.config_version + 1,
        )
        return ScanChange.REVIVED, revived

    def vanished(self, stored: Link) -> tuple[ScanChange, Link | None]:
        """What becomes of a watched link that none of the files read holds any more."""
        if any(self._is_unread(place.file) for place in stored.places):
            return ScanChange.UNCHANGED, None
        staying = self._staying(stored, [])
        if not staying:
            # Without places: so a scan that finds it again knows that it was a scan that retired it.
            retired = replace(stored, retired_at=self._now, config_version=stored.config_version + 1, places=())
            return ScanChange.RETIRED, retired
        places = tuple(place for place in stored.places if place.scanned_for not in self._teams)
        after = replace(stored, owner=staying[0], also_used_by=tuple(sorted(staying[1:])), places=places)
        return (ScanChange.UPDATED, after) if after != stored else (ScanChange.UNCHANGED, None)

    def _new(self, url: str, places: tuple[Place, ...], teams: Sequence[str]) -> Link:
        return Link(
            id=scanned_link_id(url),
            url=url,
            host=host_key(url),
            owner=teams[0],
            active_since=self._now,
            places=places,
            also_used_by=tuple(sorted(teams[1:])),
            allocations={},
        )

    def _used_by(self, stored: Link, teams: Sequence[str], places: tuple[Place, ...]) -> Link:
        """The link with these teams of the scan as users, beside those that the scan knows nothing about."""
        users = list(dict.fromkeys([*(self._staying(stored, teams) if self._prune else _users(stored)), *teams]))
        kept = [place for place in stored.places if self._is_unread(place.file) or self._is_foreign(place)]
        taken = {(place.file, place.line) for place in kept}
        new = [place for place in places if (place.file, place.line) not in taken]
        return replace(
            stored,
            owner=users[0] if users else None,
            also_used_by=tuple(sorted(users[1:])),
            places=tuple(sorted([*kept, *new], key=lambda place: (place.file, place.line))),
        )

    def _staying(self, stored: Link, teams: Sequence[str]) -> list[str]:
        """Who uses a link still if only these teams of the scan do. What people registered keeps its owner."""
        if all(place.scanned_for is None for place in stored.places):
            return _users(stored)
        gone = self._teams - set(teams)
        kept = (stored.owner,) if _registered_by_people(stored) else ()
        return [team for team in _users(stored) if team in kept or team not in gone]

    def _is_foreign(self, place: Place) -> bool:
        """Whether a place is none of this scan's: another team's, or one that was imported, in a file not read here."""
        if place.scanned_for is None:
            return place.file not in self._files
        return place.scanned_for not in self._teams

    def _is_unread(self, file: str) -> bool:
        return any(file == unread or file.startswith(f"{unread}/") or unread == "." for unread in self._unread)


def _users(link: Link) -> list[str]:
    return [team for team in (link.owner, *link.also_used_by) if team is not None]


def _registered_by_people(link: Link) -> bool:
    return any(place.scanned_for is None for place in link.places) or not has_scanned_id(link.id, link.url)


def _watched_by_url(store: Store) -> dict[str, Link]:
    """The link of each URL: of several, one that is not retired, then the first in id order."""
    watched: dict[str, Link] = {}
    for link in store.links():
        known = watched.get(link.url)
        if known is None or (known.retired_at is not None and link.retired_at is None):
            watched[link.url] = link
    return watched


def _free_id(store: Store, url: str) -> str:
    return next(id_ for id_ in scanned_link_ids(url) if (taken := store.get_link(id_)) is None or taken.url == url)
