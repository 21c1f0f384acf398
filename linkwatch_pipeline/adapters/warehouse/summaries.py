"""The aggregates of a week: how many links of which owner ended how and why. They stay when the week's file goes.

A look belongs to the week of its run and may stand in the file of the week after; so an aggregate is made of two files,
and its metadata says of which content.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from linkwatch_pipeline.adapters.warehouse.files import copy_out, replacing, week_file
from linkwatch_pipeline.adapters.warehouse.views import Views
from linkwatch_pipeline.domain.timestamps import week_key

_SUMMARY = """
SELECT run_week::DATE AS run_week, links.owner, outcome, reason, count(*) AS links
FROM last_looks
JOIN pages USING (page)
LEFT JOIN links USING (link_id)
WHERE run_week = '{week}'
GROUP BY ALL
ORDER BY ALL
"""


class Summaries:
    """The aggregates of the warehouse in `folder`."""

    def __init__(self, folder: Path, views: Views) -> None:
        self._folder = folder
        self._views = views

    def bring_up_to_date(self, week: datetime) -> bool:
        """Write a week's aggregates if they are absent or older than its files; whether they were written now.

        The caller is the sole writer.
        """
        if self._views.is_summarised(week):
            return False
        made_of = ",".join(self._views.contents(week))
        with self._views.opened(since=week, through=week) as database:
            with replacing(week_file(self._folder, "summaries", week)) as scratch:
                copy_out(database, _SUMMARY.format(week=week_key(week)), scratch / "new.parquet", sources=made_of)
        return True
