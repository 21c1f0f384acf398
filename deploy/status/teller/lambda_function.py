"""The entry of the zip of the teller."""

from linkwatch_pipeline.entrypoints.status_lambda import tell_handler as lambda_handler

__all__ = ["lambda_handler"]
