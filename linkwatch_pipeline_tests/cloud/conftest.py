"""A terminal for those who play what an operator does in the cloud."""

from __future__ import annotations

from linkwatch_pipeline_tests.entrypoints.conftest import terminal

__all__ = ["terminal"]
