"""Dagster's view of linkwatch: one file per verb, bodies of a few lines, every decision in the use cases."""
