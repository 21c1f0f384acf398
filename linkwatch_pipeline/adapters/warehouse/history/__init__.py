"""Histories made up from a seed: what a handbook's links might have done week by week."""
