-- What every section reads, over the view `files` (the weeks' Parquet files). A view reads only the columns that are asked for.

-- Looks of runs; checks by hand have no run and count nowhere. `run_week` is the Monday of the run, whenever it was late.
CREATE TEMP VIEW looks AS
SELECT *, left(run_id, 10) AS run_week
FROM files
WHERE run_id IS NOT NULL;

-- The few looks of retry runs. A weekly run looks at a link once, so every further look of its week is among these.
CREATE TEMP VIEW later_looks AS
SELECT link_id, run_week, sequence
FROM looks
WHERE contains(run_id, '~retry-');

-- Each link's last look of each week.
CREATE TEMP VIEW last_looks AS
SELECT looks.*
FROM looks
ANTI JOIN later_looks AS later
    ON later.link_id = looks.link_id AND later.run_week = looks.run_week AND later.sequence > looks.sequence;
