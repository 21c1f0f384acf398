"""Metrics in CloudWatch: one namespace, no dimensions, so that an alarm names a metric by its name alone."""

from __future__ import annotations

import logging
import math
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from linkwatch_pipeline.adapters.aws_client import SETTINGS_ERRORS, make_client

logger = logging.getLogger(__name__)


class CloudWatchMetrics:
    """Puts each number at once (`ports.Metrics`).

    A number that CloudWatch does not take is logged and dropped: no check ever fails for its metric, and an alarm on
    missing data tells of a heartbeat that does not arrive.

    Args:
        client: a boto3 CloudWatch client.
        namespace: what the alarms look in.
    """

    def __init__(self, client: Any, *, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    @classmethod
    def connect(cls, *, namespace: str) -> CloudWatchMetrics:
        """The metrics, over a client of its own, with region, endpoint and credentials found the ordinary boto3 way."""
        from botocore.config import Config

        config = Config(connect_timeout=3, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 3})
        return cls(make_client("cloudwatch", config=config, called="CloudWatch"), namespace=namespace)

    def put(self, name: str, value: float, *, unit: str = "Count", at: datetime) -> None:
        """Send one number. Raises ValueError for NaN and infinities, which CloudWatch does not have."""
        if not math.isfinite(value):
            raise ValueError(f"metric {name} is {value}, which neither CloudWatch nor JSON can say")
        datum = {"MetricName": name, "Value": value, "Unit": unit, "Timestamp": at}
        try:
            self._client.put_metric_data(Namespace=self._namespace, MetricData=[datum])
        except (ClientError, BotoCoreError, *SETTINGS_ERRORS) as exc:
            logger.warning("metric not written", extra={"action": "put_metric", "metric": name, "error": str(exc)})
