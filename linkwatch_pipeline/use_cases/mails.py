"""What a notice says to a person (SPEC 10), in words that stay within what one observation proves (SPEC 1).

Whatever comes from outside (URL, file names, team names) is shown inert: escaped in HTML, and its invisible characters
spelled out, so that it can neither add lines to the mail nor turn its text around.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from html import escape
from string import Template

from linkwatch_pipeline.domain.links import LinkState
from linkwatch_pipeline.domain.notices import Notice, bounded
from linkwatch_pipeline.ports import Mail
from linkwatch_pipeline.use_cases.mail_frame import REPEATED, framed_html, framed_text, message_id
from linkwatch_pipeline.use_cases.service_words import (
    NOT_OF_SERVICES,
    is_about_service,
    service_headline,
    service_summary,
)
from linkwatch_pipeline.use_cases.wording import anchor, answer_of, moment, visible

_BROKEN = (
    "When linkwatch asked for this page, the answer was $answer. That is what was seen at that moment; it does not "
    "prove that the page is gone for good. Links are usually looked at once a week, so it may have begun days earlier. "
    "Please have a look, and mend the link where it stands."
)
_RECOVERED = (
    "When linkwatch asked for this page, the answer was $answer: the page can be reached again.$broken That does not "
    "prove that it still says what the handbook means; please have a look."
)
_FOOTER = (
    "You get this mail because your team owns the link or uses its URL. "
    "linkwatch writes once when a link breaks and once when it can be reached again."
)

_ROW = Template(
    '<dt style="font-size: 0.85em; opacity: 0.75;">$label</dt>\n<dd style="margin: 0 0 0.7em 0;">$value</dd>'
)


def compose(
    notice: Notice,
    recipient: str,
    copies: Sequence[str] = (),
    *,
    sender: str,
    now: datetime,
    repeated: bool = False,
) -> Mail:
    """The mail that tells one notice.

    Args:
        recipient, copies: addresses of the owner and of other teams that use the same URL.
        now: the date of the mail (UTC).
        repeated: an earlier attempt may already have reached the mailbox; the mail says so.
    """
    title = f"{_headline(notice)}: {notice.link_id}"
    summary = _summary(notice) + (f" {REPEATED}" if repeated else "")
    facts = _facts(notice)
    return Mail(
        transition_id=notice.transition_id,
        sender=sender,
        recipient=recipient,
        copies=tuple(copies),
        subject=f"[linkwatch] {title}",
        text=framed_text(title, summary, [_lines(facts)], footer=_FOOTER),
        html=framed_html(
            title,
            summary,
            _html(notice, facts),
            footer=_FOOTER,
            tells_break=notice.to_state is LinkState.BROKEN,
        ),
        message_id=message_id(notice.transition_id),
        date=now,
        references=(message_id(notice.link_id, suffix=".thread"),),
    )


def _headline(notice: Notice) -> str:
    if is_about_service(notice):
        return service_headline(notice)
    return "Broken" if notice.to_state is LinkState.BROKEN else "Reachable again"


def _summary(notice: Notice) -> str:
    if is_about_service(notice):
        return service_summary(notice)
    if notice.to_state is LinkState.BROKEN:
        return Template(_BROKEN).substitute(answer=answer_of(notice))
    broken = (
        "" if notice.since is None else f" It had been seen broken since {moment(notice.since)}, for {_outage(notice)}."
    )
    return Template(_RECOVERED).substitute(answer=answer_of(notice), broken=broken)


def _facts(notice: Notice) -> list[tuple[str, list[str]]]:
    """Label and lines of each field, in the order of reading."""
    facts = [
        ("URL", [visible(notice.url)]),
        ("In the handbook", _places(notice)),
        ("Answer", [answer_of(notice)]),
        ("State", [f"{notice.to_state.value} (was {notice.from_state.value})"]),
        ("Checked at", [moment(notice.observed_at)]),
        ("Owner", [visible(notice.owner) if notice.owner else "nobody"]),
        ("Link", [notice.link_id]),
        ("Transition", [notice.transition_id]),
    ]
    if notice.from_state is LinkState.BROKEN and notice.since is not None:
        facts.insert(4, ("Broken since", [f"{moment(notice.since)} ({_outage(notice)}, as far as was seen)"]))
    if is_about_service(notice):
        return [fact for fact in facts if fact[0] not in NOT_OF_SERVICES]
    return facts


def _outage(notice: Notice) -> str:
    """How long a recovered link was seen broken, of the moments as they are shown, to the second."""
    begun = notice.observed_at if notice.since is None else notice.since
    return _duration(notice.observed_at.replace(microsecond=0) - begun.replace(microsecond=0))


def _places(notice: Notice) -> list[str]:
    told = bounded(notice)  # one of an earlier linkwatch has all places
    shown = [f"{visible(place.file)}, line {place.line}" for place in told.places]
    if told.further_places:
        shown.append(f"and {told.further_places} more")
    return shown or ["no place recorded"]


def _lines(facts: Sequence[tuple[str, list[str]]]) -> list[str]:
    width = max(len(label) for label, _ in facts) + 2
    return [f"{label + ':':<{width}}" + f"\n{'':{width}}".join(lines) for label, lines in facts]


def _html(notice: Notice, facts: Sequence[tuple[str, list[str]]]) -> str:
    rows = []
    for label, lines in facts:
        value = anchor(notice.url) if label == "URL" else "<br>".join(escape(line) for line in lines)
        rows.append(_ROW.substitute(label=label, value=value))
    return "\n".join(['<dl style="margin: 0; overflow-wrap: anywhere;">', *rows, "</dl>"])


def _duration(length: timedelta) -> str:
    """`7 days`, `1 day 3 hours`, `12 minutes`: the two largest units."""
    minutes = max(int(length.total_seconds()) // 60, 0)
    parts = [(minutes // 1440, "day"), (minutes // 60 % 24, "hour"), (minutes % 60, "minute")]
    words = [f"{count} {unit}{'s' if count != 1 else ''}" for count, unit in parts if count]
    return " ".join(words[:2]) or "less than a minute"
