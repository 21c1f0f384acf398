"""What a digest says: all changes of one run that concern one owner, by host and handbook file, the worst first.

A host with several changes is one line that unfolds, so that an outage of one site stays one line on a phone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape

from linkwatch_pipeline.domain.links import LinkState, Owner
from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.domain.urls import host_key
from linkwatch_pipeline.ports import Mail
from linkwatch_pipeline.use_cases.mail_frame import REPEATED, framed_html, framed_text, message_id
from linkwatch_pipeline.use_cases.wording import anchor, answer_of, moment, visible

_SUMMARY = (
    "These links changed when linkwatch looked at them. What is told is what was seen at that moment; a broken link "
    "may come back, and a reachable page need not say what the handbook means."
)
_FOOTER = (
    "You get this mail because your team owns these links or uses their URLs, and asked for one mail for each run. "
    "Each link stands with the id of its change."
)
_NO_PLACE = "no place recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Host:
    """One host's changes, by the handbook file in which each link stands first; the files with most breaks first."""

    name: str
    files: Sequence[tuple[str, Sequence[Notice]]]

    @property
    def notices(self) -> list[Notice]:
        return [notice for _, notices in self.files for notice in notices]


def compose_digest(
    notices: Sequence[Notice],
    owner: Owner,
    copies: Sequence[str] = (),
    *,
    mail_id: str,
    sender: str,
    now: datetime,
    repeated: bool = False,
) -> Mail:
    """The mail that tells several notices of one run.

    Args:
        copies: addresses of other teams that use one of the URLs.
        mail_id: the digest's identity (`domain.notices.digest_id`).
        now: the date of the mail (UTC).
        repeated: an earlier attempt may already have reached the mailbox; the mail says so.
    """
    title = f"{_counted(notices)}: {owner.team}"
    summary = f"{_SUMMARY} {REPEATED}" if repeated else _SUMMARY
    hosts = _by_host(notices)
    return Mail(
        transition_id=mail_id,
        transition_ids=tuple(notice.transition_id for notice in notices),
        sender=sender,
        recipient=owner.address,
        copies=tuple(copies),
        subject=f"[linkwatch] {title}",
        text=framed_text(title, summary, map(_lines, hosts), footer=_FOOTER),
        html=framed_html(title, summary, _html(hosts), footer=_FOOTER, tells_break=any(map(_is_break, notices))),
        message_id=message_id(mail_id),
        date=now,
        references=(message_id(owner.team, suffix=".digests"),),
    )


def _counted(notices: Iterable[Notice]) -> str:
    """`3 broken, 1 reachable again`."""
    states = [notice.to_state for notice in notices]
    words = ((LinkState.BROKEN, "broken"), (LinkState.REACHABLE, "reachable again"))
    return ", ".join(f"{states.count(state)} {word}" for state, word in words if state in states)


def _by_host(notices: Iterable[Notice]) -> list[_Host]:
    hosts: dict[str, list[Notice]] = defaultdict(list)
    for notice in notices:
        hosts[host_key(notice.url)].append(notice)
    grouped = [_Host(name=name, files=_by_file(own)) for name, own in hosts.items()]
    return sorted(grouped, key=lambda host: (*_badness(host.notices), host.name))


def _by_file(notices: Iterable[Notice]) -> list[tuple[str, Sequence[Notice]]]:
    files: dict[str, list[Notice]] = defaultdict(list)
    for notice in notices:
        files[notice.places[0].file if notice.places else ""].append(notice)
    return sorted(
        ((file, sorted(own, key=_reading_order)) for file, own in files.items()),
        key=lambda entry: (*_badness(entry[1]), entry[0]),
    )


def _badness(notices: Sequence[Notice]) -> tuple[int, int]:
    """Sorts most breaks first, then most changes."""
    return -sum(map(_is_break, notices)), -len(notices)


def _reading_order(notice: Notice) -> tuple[bool, int, str]:
    """Breaks before recoveries, then as they stand in the file."""
    line = notice.places[0].line if notice.places else 0
    return not _is_break(notice), line, notice.link_id


def _is_break(notice: Notice) -> bool:
    return notice.to_state is LinkState.BROKEN


def _lines(host: _Host) -> list[str]:
    lines = [f"{visible(host.name)}: {_counted(host.notices)}"]
    for file, notices in host.files:
        lines.append(f"  {visible(file) or _NO_PLACE}")
        for notice in notices:
            lines += [f"    {_what(notice)}", f"      {visible(notice.url)}"]
    return lines


def _html(hosts: Sequence[_Host]) -> str:
    content = "\n".join(_host_html(host) for host in hosts)
    return f'<div style="overflow-wrap: anywhere;">\n{content}\n</div>'


def _host_html(host: _Host) -> str:
    heading = f"<strong>{escape(visible(host.name))}</strong>: {_counted(host.notices)}"
    files = "\n".join(_file_html(file, notices) for file, notices in host.files)
    if len(host.notices) == 1:
        return f'<div style="margin: 0.6em 0;">{heading}\n{files}\n</div>'
    return f'<details style="margin: 0.6em 0;">\n<summary>{heading}</summary>\n{files}\n</details>'


def _file_html(file: str, notices: Sequence[Notice]) -> str:
    rows = "\n".join(
        f'<li style="margin: 0.3em 0;">{escape(_what(notice))}<br>{anchor(notice.url)}</li>' for notice in notices
    )
    place = escape(visible(file) or _NO_PLACE)
    heading = f'<p style="margin: 0.6em 0 0 0; font-size: 0.85em; opacity: 0.75;">{place}</p>'
    return f'{heading}\n<ul style="margin: 0; padding-left: 1.2em;">\n{rows}\n</ul>'


def _what(notice: Notice) -> str:
    """`line 12: guide broken (was reachable), 404 Not Found at 2026-09-28 09:00:04 UTC (guide:2), and so on`."""
    line = f"line {notice.places[0].line}: " if notice.places else ""
    now = "broken" if _is_break(notice) else "reachable again"
    change = f"{now} (was {notice.from_state.value})"
    more = len(notice.places) + notice.further_places - 1
    further = f", and {more} more place{'s' if more > 1 else ''}" if more > 0 else ""
    seen = f"{answer_of(notice)} at {moment(notice.observed_at)}"
    since = ""
    if notice.to_state is LinkState.REACHABLE and notice.since is not None:
        since = f", broken since {moment(notice.since)}"
    return f"{line}{notice.link_id} {change}, {seen}{since} ({notice.transition_id}){further}"
