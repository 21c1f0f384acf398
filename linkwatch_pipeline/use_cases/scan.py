"""Take the links out of a handbook and register them, with the places where they stand (SPEC 6). Nothing is fetched."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urljoin

from linkwatch_pipeline.domain.errors import DamagedRecord, InvalidInput, NotFound, StaleWrite
from linkwatch_pipeline.domain.handbook import (
    Aside,
    FileProblem,
    FoundLink,
    FoundUrl,
    ReadFile,
    ScanResult,
    Skipped,
    is_literal,
    read_reference,
    refuse_private_name,
    scanned_link_id,
    scanned_link_ids,
    shown_reference,
)
from linkwatch_pipeline.domain.links import Link, Place, check_url
from linkwatch_pipeline.domain.owner_map import OwnerMap
from linkwatch_pipeline.domain.scanned_links import Scan, ScanChange
from linkwatch_pipeline.domain.urls import RefusedUrl, Url
from linkwatch_pipeline.ports import Damaged, Store
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanSummary:
    """The ids of the links by what was done to them, each in id order.

    `files_gone` are those in which retired links stood and that this scan did not read: deleted, or of another folder.
    `damaged` are links of found URLs that cannot be read, and were left as they are.
    """

    ids: dict[ScanChange, tuple[str, ...]]
    files_gone: tuple[str, ...] = ()
    damaged: tuple[DamagedRecord, ...] = ()

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
        team has another address), DamagedRecord (a link whose URL cannot be read might be any of these; one with
        `prune`, since nobody knows whether it is to be retired); nothing is written then.
    """
    for _ in range(_ATTEMPTS):
        _refuse_unknown_teams(store, owners, notify)
        new_owners = [owner_to_write(store, team, notify) for team in owners.teams]
        if prune and not result.files:
            raise InvalidInput("prune", "no file was read, so every link would be retired", "Look at PATH.")
        decided = _decide(store, result, Scan(result, owners, now=now, prune=prune), prune=prune)
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
    damaged: tuple[DamagedRecord, ...] = ()

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
            damaged=self.damaged,
        )


def _decide(store: Store, result: ScanResult, scan: Scan, *, prune: bool) -> _Decided:
    urls = {found.url for found in result.found}
    damaged: dict[str, DamagedRecord] = {}

    def told(error: DamagedRecord) -> None:
        if prune or error.url is None:
            raise error
        damaged[error.url] = error

    free = {scanned_link_id(url) for url in urls}
    watched = _watched_by_url(store, urls, free, prune=prune, damaged=told)
    decided = _Decided(damaged=tuple(error for url, error in damaged.items() if url in urls))
    for found in result.found:
        if found.url in damaged:
            continue
        stored = watched.get(found.url)
        link_id = stored.id if stored is not None else _free_id(store, found.url, () if damaged else free)
        decided.add(link_id, stored, *scan.found(found, stored))
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


def _watched_by_url(
    store: Store, urls: Collection[str], free: set[str], *, prune: bool, damaged: Damaged
) -> dict[str, Link]:
    """The link of each URL: of several, one that is not retired, then the first in id order.

    Only of those that the scan has to do with: with one of these URLs, or perhaps to be retired if it prunes.

    Args: free: ids; those that a link has are taken out, so that nobody has to ask for each.
    """
    watched: dict[str, Link] = {}
    for link in store.links(damaged=damaged):
        free.discard(link.id)
        if link.url not in urls and not (prune and link.places and link.retired_at is None):
            continue
        known = watched.get(link.url)
        if known is None or (known.retired_at is not None and link.retired_at is None):
            watched[link.url] = link
    return watched


def _free_id(store: Store, url: str, free: Collection[str]) -> str:
    """The first id of a URL that no other link has. Args: free: ids that are known to be free."""
    if (first := scanned_link_id(url)) in free:
        return first
    return next(id_ for id_ in scanned_link_ids(url) if (taken := store.get_link(id_)) is None or taken.url == url)
