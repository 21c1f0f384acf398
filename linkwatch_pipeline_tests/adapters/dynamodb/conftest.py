"""A table of each test's own."""

from __future__ import annotations

from typing import Any

import pytest

from linkwatch_pipeline.adapters.store.dynamodb import DynamoStore
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.tables import PATIENT, make_table, store_on


@pytest.fixture
def client(ministack: Cloud) -> Any:
    return ministack.client("dynamodb", config=PATIENT)


@pytest.fixture
def name(ministack: Cloud) -> str:
    """The name of an empty table."""
    return make_table(ministack)


@pytest.fixture
def store(client: Any, name: str) -> DynamoStore:
    return store_on(client, name)
