"""Readers of the tables that people hand over: CSV, JSON, YAML and plain lists of URLs. One module a kind."""
