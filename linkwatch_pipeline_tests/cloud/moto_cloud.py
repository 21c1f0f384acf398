"""A DynamoDB inside the process, for its pages of 1 MB. Never for threads: moto loses what it acknowledged to them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.store.dynamodb import CLIENT, DynamoStore
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.tables import create_table, store_on

AMAZON = Cloud(endpoint_url="https://dynamodb.us-east-1.amazonaws.com")  # moto answers in its place


def moto_storage(request: pytest.FixtureRequest, folder: Path) -> Callable[[], DynamoStore]:
    """A table that is forgotten at the end of the test."""
    from moto import mock_aws

    mocked = mock_aws()
    mocked.start()
    request.addfinalizer(mocked.stop)
    create_table(AMAZON.client("dynamodb"), folder.name)
    return partial(_open, folder.name)


def _open(table: str) -> DynamoStore:
    return store_on(AMAZON.client("dynamodb", config=CLIENT), table, page_items=None)
