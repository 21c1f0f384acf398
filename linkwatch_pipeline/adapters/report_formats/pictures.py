"""Pictures of the report as inline SVG: bars without text, so that they stretch to any width; words stand beside them.

Nothing that others wrote is drawn: outcomes, counts and dates alone. Colours are the page's (`templates/report.css`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from linkwatch_pipeline.adapters.report_formats.words import OUTCOME_WORDS
from linkwatch_pipeline.domain.coverage import WeekCount, percent
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.timestamps import week_key

MOST_WEEKS = 52
_HEIGHT, _STEP, _GAP = 100, 10, 2
_IN_TROUBLE = tuple(outcome for outcome in OUTCOME_WORDS if outcome is not Outcome.REACHABLE)


def share_bar(outcome: Outcome, share: float) -> Markup:
    """A bar as long as the share, 0 to 1; the number stands beside it."""
    width = max(share * 100, 0.5) if share else 0
    bar = f'<rect class="{outcome.value}" width="{width:.2f}" height="10"/>'
    return Markup(
        f'<svg class="share" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="rail" width="100" height="10"/>{bar}</svg>'
    )


def weeks_of_trouble(weeks: Sequence[WeekCount]) -> tuple[Markup, int]:
    """Links not reachable in each week, stacked by outcome, and the highest count. Args: weeks: the newest first."""
    return _stacked(weeks, _IN_TROUBLE, "links not plainly reachable, by week")


def weeks_of_outcomes(weeks: Sequence[WeekCount]) -> tuple[Markup, int]:
    """All links of each week, stacked by outcome, and the highest count. Args: weeks: the newest first."""
    return _stacked(weeks, tuple(OUTCOME_WORDS), "links by outcome, by week")


def weeks_of_coverage(weeks: Sequence[WeekCount]) -> Markup:
    """The coverage of each week, 0 to 100 %. Args: weeks: the newest first."""
    shown = list(reversed(weeks[:MOST_WEEKS]))
    bars = "".join(_coverage_bar(number, week) for number, week in enumerate(shown))
    return _picture(shown, bars, "coverage by week: " + _ends([percent(week.coverage) for week in shown]))


def _stacked(weeks: Sequence[WeekCount], outcomes: Sequence[Outcome], what: str) -> tuple[Markup, int]:
    shown = list(reversed(weeks[:MOST_WEEKS]))
    sums = [sum(week.count(outcome) or 0 for outcome in outcomes) for week in shown]
    highest = max([*sums, 1])
    bars = "".join(_column(number, week, outcomes, highest) for number, week in enumerate(shown))
    words = _ends(
        [str(total) if week.links is not None else "no data" for week, total in zip(shown, sums, strict=True)]
    )
    return _picture(shown, bars, f"{what}: {words}"), highest


def _column(number: int, week: WeekCount, outcomes: Sequence[Outcome], highest: int) -> str:
    if week.links is None:
        return _no_data(number, week)
    told = ", ".join(f"{OUTCOME_WORDS[outcome]} {week.count(outcome)}" for outcome in outcomes)
    return _titled(f"{week_key(week.week)}: {told}", _pieces(number, week, outcomes, highest))


def _pieces(number: int, week: WeekCount, outcomes: Sequence[Outcome], highest: int) -> Iterator[str]:
    below = 0.0
    for outcome in outcomes:
        height = (week.count(outcome) or 0) / highest * _HEIGHT
        below += height
        if height:
            yield _bar(number, outcome.value, _HEIGHT - below, height)


def _coverage_bar(number: int, week: WeekCount) -> str:
    if week.coverage is None:
        return _no_data(number, week)
    height = week.coverage * _HEIGHT
    title = f"{week_key(week.week)}: coverage {percent(week.coverage)}"
    return _titled(title, [_bar(number, "coverage", _HEIGHT - height, height)])


def _no_data(number: int, week: WeekCount) -> str:
    return _titled(f"{week_key(week.week)}: no data", [_bar(number, "nodata", 0, _HEIGHT)])


def _bar(number: int, kind: str, top: float, height: float) -> str:
    left, width = number * _STEP + _GAP / 2, _STEP - _GAP
    return f'<rect class="{kind}" x="{left:g}" y="{top:.2f}" width="{width}" height="{height:.2f}"/>'


def _titled(title: str, shapes: Sequence[str] | Iterator[str]) -> str:
    return f"<g><title>{title}</title>{''.join(shapes)}</g>"


def _picture(weeks: Sequence[WeekCount], bars: str, words: str) -> Markup:
    return Markup(
        f'<svg class="weeks" viewBox="0 0 {max(len(weeks), 1) * _STEP} {_HEIGHT}" preserveAspectRatio="none" '
        f'role="img" aria-label="{words}">{bars}</svg>'
    )


def _ends(values: Sequence[str]) -> str:
    """The first and the last value in words, for those who cannot see the picture."""
    return f"{values[0]} in the first week shown, {values[-1]} in the last" if values else "no data"
