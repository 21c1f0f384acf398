"""The entry of the zip of the monitor."""

from linkwatch_pipeline.entrypoints.status_lambda import monitor_handler as lambda_handler

__all__ = ["lambda_handler"]
