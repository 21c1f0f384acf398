"""The entry of the zip of the processor."""

from linkwatch_pipeline.entrypoints.status_lambda import processor_handler as lambda_handler

__all__ = ["lambda_handler"]
