"""Damages what a store holds, as a hand, a bug or a newer tool would."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from linkwatch_pipeline.adapters.store.dynamodb_items import observation_key, transition_key
from linkwatch_pipeline.adapters.store.rows import HOSTS, LINKS, MUTES, NOTICES, OBSERVATIONS, RUNS, TABLES, TRANSITIONS


def spoil_row(path: Path, table: str, key: str, **fields: Any) -> None:
    """Args:
    key: of the row; of a job its link, of an observation `link:sequence`.
    fields: what its columns hold afterwards.
    """
    told = TABLES[table]
    where = " || ':' || ".join(told.key) if told in (OBSERVATIONS, TRANSITIONS) else told.key[-1]
    columns = ", ".join(f"{field} = ?" for field in fields)
    with closing(sqlite3.connect(path)) as database, database:
        changed = database.execute(f"UPDATE {table} SET {columns} WHERE {where} = ?", (*fields.values(), key))
        assert changed.rowcount == 1


def spoil_item(client: Any, name: str, table: str, key: str, **fields: Any) -> None:
    """As `spoil_row`, of anything but owners, jobs and chains in the DynamoDB table `name`."""
    found = [item for item in client.scan(TableName=name)["Items"] if _is_at(item, table, key)]
    [item] = found
    said = {field: {"S": value} if isinstance(value, str) else {"N": str(value)} for field, value in fields.items()}
    client.put_item(TableName=name, Item={**item, **said})


def _is_at(item: dict[str, Any], table: str, key: str) -> bool:
    pk, sk = item["pk"]["S"], item["sk"]["S"]
    if table == NOTICES.name:
        return pk.startswith("OUTBOX#") and sk == key
    link_id, _, told = key.rpartition(":")
    if TABLES[table] in (OBSERVATIONS, TRANSITIONS):
        made = observation_key if table == OBSERVATIONS.name else transition_key
        return (pk, sk) == made(link_id, int(told))
    places = {
        LINKS: (f"LINK#{key}", "STATE"),
        RUNS: (f"RUN#{key}", "META"),
        MUTES: ("MUTES", key),
        HOSTS: (f"HOST#{key}", "LEASE"),
    }
    return (pk, sk) == places[TABLES[table]]
