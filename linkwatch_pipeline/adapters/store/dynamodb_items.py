"""How each record becomes an item of the one DynamoDB table and back, and where every item stands.

An attribute per field, named and written as the column of SQLite (`rows`); None is an absent attribute. `w` names the
write that an item comes from: whoever changes an item says which `w` was read. The layout: docs/reference/dynamodb.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from linkwatch_pipeline.adapters.store.rows import LINKS
from linkwatch_pipeline.adapters.store.table import R, Table, Undecodable
from linkwatch_pipeline.domain.errors import DamagedRecord, StoreError
from linkwatch_pipeline.domain.links import Link
from linkwatch_pipeline.domain.sequences import MAX_SEQUENCE

Key = tuple[str, str]
# As boto3's client takes and gives it: {"pk": {"S": "LINK#guide"}, ...}.
Item = dict[str, Any]

WRITE_ID = "w"
EXPIRES_AT = "expires_at"
NOTICE_DAY = "notice_day"
OVER = "over"
LINK_LIST = "LINKS"
HOST_LIST = "HOSTS"
MUTE_LIST = "MUTES"
OWNER_LIST = "OWNERS"
RUN_LIST = "RUNS"
WEEK_LIST = "WEEKS"
DAY_LIST = "OUTBOX"
OBSERVATION = "OBS#"
TRANSITION = "CHANGE#"
PART = "PART#"
JOB = "JOB#"
CHAIN = "HOST#"
DAY = "DAY#"
OPEN_DAY = "OPEN#"
LEASE = "LEASE"


def text(value: str) -> Mapping[str, str]:
    return {"S": value}


def number(value: int) -> Mapping[str, str]:
    return {"N": str(value)}


def key_attributes(key: Key) -> Item:
    return {"pk": text(key[0]), "sk": text(key[1])}


def key_of(item: Mapping[str, Any]) -> Key:
    return item["pk"]["S"], item["sk"]["S"]


class StoredItem(Item):
    """An item as it was read. It knows its table's name, so that an error can say it."""

    __slots__ = ("table",)

    def __init__(self, item: Item, table: str) -> None:
        super().__init__(item)
        self.table = table


def encode(table: Table[R], record: R, key: Key, **further: Mapping[str, Any]) -> Item:
    """The item of a record. Args: further: attributes beside the record's own."""
    values = zip(table.columns, table.encode(record), strict=True)
    attributes = {column: _attribute(column, value) for column, value in values if value is not None}
    return {**key_attributes(key), **attributes, **further}


def decode(table: Table[R], item: Mapping[str, Any]) -> R:
    """The record of an item. Raises DamagedRecord naming item and field if it is damaged."""
    try:
        return table.decode([_value(item.get(column)) for column in table.columns])
    except Undecodable as problem:
        raise damaged_item(item, str(problem)) from problem


def text_of(item: Mapping[str, Any], name: str) -> str:
    """What an attribute says. Raises DamagedRecord if it is missing."""
    try:
        return str(item[name]["S"])
    except (KeyError, TypeError) as error:
        raise damaged_item(item, f"{name} is missing") from error


def damaged_item(item: Mapping[str, Any], problem: str) -> DamagedRecord:
    """What to raise for an item that nobody can read. Args: problem: such as `url is missing`."""
    pk, sk = key_of(item)
    url = _value(item.get("url"))
    return DamagedRecord(
        f"the item {pk} / {sk} of the DynamoDB table {getattr(item, 'table', 'in use')!r} is damaged ({problem}). "
        f"Put it back from a point-in-time restore, or mend it. {_warning(pk, sk)}",
        record=f"{pk} / {sk}",
        url=url if isinstance(url, str) else None,
        key=_only_key(pk, sk),
    )


def _only_key(pk: str, sk: str) -> str | None:
    """What a run, a mute, an observation or a transition is known by."""
    if pk == MUTE_LIST:
        return sk
    kind, mark, number_of = sk.rpartition("#")
    if kind + mark in (OBSERVATION, TRANSITION) and number_of.isdecimal():
        return f"{pk.removeprefix('LINK#')}:{int(number_of)}"
    return pk.removeprefix("RUN#") if pk.startswith("RUN#") and sk == "META" else None


def _warning(pk: str, sk: str) -> str:
    """What to know before an item is deleted: few can be without harm."""
    if pk == MUTE_LIST or sk.startswith(OBSERVATION):
        return "It may be deleted if nobody needs it: nothing else leads to it."
    if pk.startswith("LINK#") and sk == "STATE":
        return "Never delete it: its observations and transitions would stay, and contradict a link registered anew."
    return "Never delete it: other items rely on it."


def entry(key: Key) -> Item:
    """An item that only says that there is something elsewhere."""
    return key_attributes(key)


def _attribute(column: str, value: object) -> Mapping[str, str]:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return number(value)
    raise StoreError(f"{column} cannot be {value!r}; nothing was written.")


def _value(attribute: Mapping[str, Any] | None) -> object:
    if attribute is None:
        return None
    if "N" in attribute:
        return int(attribute["N"]) if attribute["N"].removeprefix("-").isdecimal() else str(attribute["N"])
    return attribute.get("S", attribute)  # what is neither is told by the table of records


def item_bytes(item: Mapping[str, Any] | None) -> int:
    """About how large an item is: names, and values as UTF-8; of a map its members."""
    return sum(len(name) + _value_bytes(value) for name, value in (item or {}).items())


def _value_bytes(attribute: Mapping[str, Any]) -> int:
    if "M" in attribute:
        return item_bytes(attribute["M"])
    return sum(len(str(value).encode()) for value in attribute.values())


def link_key(link_id: str) -> Key:
    return f"LINK#{link_id}", "STATE"


def link_id_of(item: Mapping[str, Any]) -> str:
    """Of a link's item, as its key says it."""
    return key_of(item)[0].removeprefix("LINK#")


def part_key(pk: str, name: str, place: int) -> Key:
    """Args: pk: of the link."""
    return pk, f"{parts_prefix(name)}{place:06d}"


def parts_prefix(name: str | None = None) -> str:
    """How the keys of a link's parts begin, or of those under one name."""
    return PART if name is None else f"{PART}{name}#"


def owner_key(team: str) -> Key:
    return OWNER_LIST, team


def mute_key(target: str) -> Key:
    return MUTE_LIST, target


def observation_key(link_id: str, sequence: int) -> Key:
    return f"LINK#{link_id}", f"{OBSERVATION}{_digits('sequence', sequence)}"


def transition_key(link_id: str, version: int) -> Key:
    return f"LINK#{link_id}", f"{TRANSITION}{_digits('version', version)}"


def transition_key_of(transition_id: str) -> Key:
    """Where the transition of this id (`link:version`) stands."""
    link_id, _, version = transition_id.rpartition(":")
    return transition_key(link_id, int(version) if version.isascii() and version.isdigit() else 0)


def notice_key(day: str, transition_id: str) -> Key:
    return f"OUTBOX#{day}", transition_id


def run_key(run_id: str) -> Key:
    return f"RUN#{run_id}", "META"


def job_key(run_id: str, link_id: str) -> Key:
    return f"RUN#{run_id}", f"{JOB}{link_id}"


def chain_key(run_id: str, host: str) -> Key:
    return f"RUN#{run_id}", f"{CHAIN}{host}"


def host_key(host: str) -> Key:
    return f"HOST#{host}", LEASE


def host_entry_key(host: str, link_id: str) -> Key:
    """'#' sorts before everything that a host name may hold, so text order is (host, id) order."""
    return HOST_LIST, f"{host}#{link_id}"


def behind_host(host: str) -> str:
    """Sorts after every entry of this host and before those of the next one."""
    return f"{host}$"


def split_host_entry(item: Mapping[str, Any]) -> tuple[str, str]:
    host, _, link_id = item["sk"]["S"].rpartition("#")
    return host, link_id


def owner_entry_key(team: str, link_id: str) -> Key:
    return f"OWNER#{team}", f"LINK#{link_id}"


def link_entries(link: Link) -> set[Key]:
    """Where else a link has to be found: among all, on its host, with its owner."""
    found = {(LINK_LIST, link.id), host_entry_key(link.host, link.id)}
    return found if link.owner is None else found | {owner_entry_key(link.owner, link.id)}


def link_of(item: Mapping[str, Any]) -> Link:
    return decode(LINKS, item)


def _digits(name: str, value: object) -> str:
    """Ten digits, so that text order is numeric order."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_SEQUENCE:
        raise StoreError(f"{name} cannot be {value!r}; nothing was written.")
    return f"{value:010d}"
