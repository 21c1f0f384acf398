"""The emulator that other tests lean on is there, on loopback alone, and goes."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import pytest

from linkwatch_pipeline_tests.cloud.ministack import Cloud, started_ministack


def test_it_keeps_items_and_forgets_them_when_asked(tmp_path: Path) -> None:
    with started_ministack(tmp_path) as cloud:
        tables = cloud.client("dynamodb")
        tables.create_table(
            TableName="one",
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        )
        tables.put_item(TableName="one", Item={"pk": {"S": "a"}})
        assert tables.get_item(TableName="one", Key={"pk": {"S": "a"}})["Item"] == {"pk": {"S": "a"}}
        cloud.reset()
        assert tables.list_tables()["TableNames"] == []
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(cloud.endpoint_url, timeout=5)


def test_one_is_shared_by_a_session(ministack: Cloud) -> None:
    assert ministack.endpoint_url.startswith("http://127.0.0.1:")
    assert ministack.client("sqs").list_queues()["ResponseMetadata"]["HTTPStatusCode"] == 200
