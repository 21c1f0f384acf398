"""The history by week, for reports."""
