"""What becomes of a link when a scan finds it in a handbook, or finds it there no more (SPEC 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum

from linkwatch_pipeline.domain.handbook import FoundUrl, ScanResult, has_scanned_id, scanned_link_id
from linkwatch_pipeline.domain.links import Link, Place
from linkwatch_pipeline.domain.owner_map import OwnerMap
from linkwatch_pipeline.domain.urls import host_key


class ScanChange(StrEnum):
    """What a scan did to a link."""

    REGISTERED = "registered"
    REVIVED = "revived"
    UPDATED = "updated"
    RETIRED = "retired"
    UNCHANGED = "unchanged"
    LEFT_RETIRED = "left retired"  # somebody retired it by hand: a scan does not overrule people


class Scan:
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
