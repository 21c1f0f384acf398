-- A notice has the first places of its link and says how many more there are.
ALTER TABLE notices ADD COLUMN further_places INTEGER NOT NULL DEFAULT 0;
