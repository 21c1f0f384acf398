"""Queues of ready work."""
