"""Which team a file of a handbook belongs to: a map in the manner of a CODEOWNERS file.

Each line is a path pattern, spaces, and a team; the last line that matches a file decides. `#` begins a comment.
Patterns are those of CODEOWNERS: `*` stays within a folder, `**` does not, a leading `/` means the top, a pattern of
one name matches at any depth, and a folder owns everything below it. As there, `!` and `[...]` have no meaning and are
refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline.domain.links import check_team

MAX_WILDCARDS = 8  # more make a pattern slow to match

_FIELD = "owners"
_WILDCARD = re.compile(r"\*\*/|\*+|\?")
_MEANINGS = {"*": "[^/]*", "?": "[^/]", "**/": "(?:.*/)?"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    pattern: re.Pattern[str]
    team: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerMap:
    """The rules, in the order of their lines."""

    rules: tuple[_Rule, ...]

    @property
    def teams(self) -> tuple[str, ...]:
        """All teams named, sorted."""
        return tuple(sorted({rule.team for rule in self.rules}))

    def team_of(self, file: str) -> str:
        """The team of a file, by its path under the handbook's folder. Raises InvalidInput if no line matches."""
        for rule in reversed(self.rules):
            if rule.pattern.fullmatch(file):
                return rule.team
        raise InvalidInput(_FIELD, f"no line matches {file!r}", "Begin the map with a line such as '* docs-team'.")


def everything_of(team: str) -> OwnerMap:
    """One team owns all files. Raises InvalidInput."""
    return OwnerMap(rules=(_Rule(pattern=_compiled("*", _FIELD), team=check_team(team)),))


def parse_owner_map(text: str) -> OwnerMap:
    """Read a map. Raises InvalidInput, which names the line."""
    rules = []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        stripped = re.sub(r"(^|\s)#.*", "", line).strip()
        if stripped:
            rules.append(_rule(stripped, f"{_FIELD} line {number}"))
    if not rules:
        raise InvalidInput(_FIELD, "the map names no team", "Write lines such as 'pages/travel/ travel-team'.")
    return OwnerMap(rules=tuple(rules))


def _rule(line: str, field: str) -> _Rule:
    pattern, _, team = line.partition(" ") if " " in line else line.partition("\t")
    team = team.strip()
    if not team:
        raise InvalidInput(field, f"{pattern!r} has no team", "Write the pattern, a space, and the team.")
    if "@" in team[1:]:
        raise InvalidInput(field, f"{team!r} is more than one team, or an address", "Name one team.")
    if team.startswith("@"):  # @organisation/team, as CODEOWNERS writes it
        team = team.removeprefix("@").rpartition("/")[2]
    return _Rule(pattern=_compiled(pattern, field), team=check_team(team, field))


def _compiled(pattern: str, field: str) -> re.Pattern[str]:
    if pattern.startswith("!") or "[" in pattern or "\\" in pattern:
        raise InvalidInput(field, f"{pattern!r} uses '!', '[' or '\\'", "Use '*', '**' and '?' only.")
    if len(_WILDCARD.findall(pattern)) > MAX_WILDCARDS:
        raise InvalidInput(field, f"{pattern!r} has more than {MAX_WILDCARDS} wildcards", "Write several lines.")
    whole = pattern.strip("/")
    if not whole:
        raise InvalidInput(field, f"{pattern!r} matches nothing", "Write '*' for everything.")
    # A slash that is not the last character ties the pattern to the top, as in .gitignore.
    beginning = "" if "/" in pattern.rstrip("/") else "(?:.*/)?"
    inside = "/.*" if pattern.endswith("/") else "(?:/.*)?"
    return re.compile(beginning + _translated(whole) + inside, re.DOTALL)


def _translated(pattern: str) -> str:
    pieces, position = [], 0
    for wildcard in _WILDCARD.finditer(pattern):
        pieces.append(re.escape(pattern[position : wildcard.start()]))
        pieces.append(_MEANINGS.get(wildcard[0], ".*"))
        position = wildcard.end()
    return "".join([*pieces, re.escape(pattern[position:])])
