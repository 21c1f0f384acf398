"""Servers of service status on loopback: Debian's PostgreSQL, Valkey from PyPI, and a small team's data."""
