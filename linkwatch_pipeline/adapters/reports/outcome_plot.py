"""A picture of the outcomes over the weeks: how many links ended how, and below it those in trouble by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING

from linkwatch_pipeline.domain.coverage import WeekCount
from linkwatch_pipeline.domain.outcomes import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_WEEKS = 26
# The colours of the pictures in the Dagster UI, in the order in which the bars are stacked.
_COLOURS = {
    Outcome.REACHABLE: "#2e7d32",
    Outcome.BROKEN: "#c62828",
    Outcome.UNCERTAIN: "#ef6c00",
    Outcome.THROTTLED: "#f9a825",
    Outcome.CONTENT_CHANGED: "#6a1b9a",
}
_IN_TROUBLE = tuple(outcome for outcome in _COLOURS if outcome is not Outcome.REACHABLE)
_LABELS = 8  # dates under the axis, so that they do not run into each other


def draw_outcomes(weeks: Sequence[WeekCount]) -> bytes | None:
    """A PNG of the latest weeks, the newest on the right; weeks without data stay empty and say so.

    Args: weeks: the newest first.  Returns: None where matplotlib (the extra `reports`) is not installed.
    """
    try:
        from matplotlib.figure import Figure  # not pyplot: it keeps figures and picks a window system
    except ImportError:
        return None
    shown = list(reversed(weeks[:MOST_WEEKS]))
    figure = Figure(figsize=(7.2, 4.2), dpi=90, layout="constrained")
    every, trouble = figure.subplots(2, 1, sharex=True)
    _stack(every, shown, tuple(_COLOURS))
    _stack(trouble, shown, _IN_TROUBLE)
    every.set_ylabel("links")
    trouble.set_ylabel("links not reachable")
    step = -(-len(shown) // _LABELS) or 1
    trouble.set_xticks(range(0, len(shown), step), [f"{week.week:%Y-%m-%d}" for week in shown[::step]], fontsize=8)
    figure.legend(*every.get_legend_handles_labels(), loc="outside upper center", ncols=len(_COLOURS), fontsize=8)
    picture = BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()


def _stack(axes: Axes, weeks: Sequence[WeekCount], outcomes: Sequence[Outcome]) -> None:
    from matplotlib.ticker import MaxNLocator

    below = [0] * len(weeks)
    for outcome in outcomes:
        counts = [week.count(outcome) or 0 for week in weeks]
        axes.bar(range(len(weeks)), counts, bottom=below, color=_COLOURS[outcome], label=outcome.value)
        below = [low + count for low, count in zip(below, counts, strict=True)]
    for number, week in enumerate(weeks):
        if week.links is None:
            axes.annotate(
                "no data",
                (number, 0),
                xycoords=axes.get_xaxis_transform(),
                xytext=(0, 4),
                textcoords="offset points",
                rotation=90,
                ha="center",
                va="bottom",
                fontsize=8,
                color="#757575",
            )
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlim(-0.7, max(len(weeks), _LABELS) - 0.3)  # few weeks stay narrow bars, on the left
    axes.set_ylim(0, max([1, *below]) * 1.05)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
