"""A record as a row: a column per field, under the field's name.

What SQLite holds as it is (text, whole numbers, None) needs no converter; `rows` names those of the other fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, fields
from typing import Any, ClassVar, Generic, Protocol, TypeVar

Row = tuple[Any, ...]
_WORDS = {int: "a whole number", str: "a text"}


class Undecodable(ValueError):
    """A row that is no record. It quotes nothing of what the row holds.

    Args:
        key: what identifies the row.
        url: its column of that name, if it has one that can be read.
    """

    def __init__(self, table: str, key: Row, field: str, problem: str, url: str | None) -> None:
        super().__init__(f"{field} {problem}")
        self.url = url
        self.table = table
        self.key = key
        self.field = field


class _Record(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


R = TypeVar("R", bound=_Record)


@dataclass(frozen=True, slots=True)
class Converter:
    """How one field's values are written and read. None is stored as NULL and never converted."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


class Table(Generic[R]):
    """One table and the record that its rows hold.

    Args:
        key: the columns that identify a row.
        converters: those of the fields that need one.
        may_lack: fields that have their default in a row without them, such as one of an earlier linkwatch.
    """

    def __init__(
        self,
        name: str,
        record: type[R],
        *,
        key: tuple[str, ...],
        converters: Mapping[str, Converter],
        may_lack: Sequence[str] = (),
    ):
        self.name = name
        self.key = key
        self.columns = tuple(field.name for field in fields(record))
        self.record = record
        self._converters = dict(converters)
        self._plain = [
            (index, _kind_of(field)) for index, field in enumerate(fields(record)) if field.name not in converters
        ]
        self._required = [
            index
            for index, field in enumerate(fields(record))
            if field.name not in may_lack and "None" not in str(field.type)
        ]
        self._defaults = [
            (self.columns.index(field.name), field.default) for field in fields(record) if field.name in may_lack
        ]
        self._readers = [(self.columns.index(column), converter.read) for column, converter in converters.items()]
        self._beside_key = tuple(column for column in self.columns if column not in key)
        self._where_key = " AND ".join(f"{column} = ?" for column in key)
        self.select = f"SELECT {', '.join(self.columns)} FROM {name}"
        self.select_one = f"{self.select} WHERE {self._where_key}"
        self.insert = f"INSERT INTO {name} ({', '.join(self.columns)}) VALUES ({', '.join('?' * len(self.columns))})"
        self.insert_if_absent = f"{self.insert} ON CONFLICT ({', '.join(key)}) DO NOTHING"

    def encode(self, record: R, columns: Sequence[str] = ()) -> Row:
        """The record's values in the order of `columns`; of all columns if none is named."""
        return tuple(self._written(column, getattr(record, column)) for column in columns or self.columns)

    def decode(self, row: Sequence[Any]) -> R:
        """The record of a row in column order.

        Raises: Undecodable, naming the field that is missing or holds something else.
        """
        values = list(row)
        for index in self._required:
            if values[index] is None:
                raise self._undecodable(row, index, "is missing")
        for index, kind in self._plain:
            if values[index].__class__ is not kind and values[index] is not None:
                raise self._undecodable(row, index, f"is not {_WORDS[kind]}")
        for index, read in self._readers:
            if values[index] is not None:
                try:
                    values[index] = read(values[index])
                except (TypeError, ValueError, KeyError, AttributeError) as error:
                    raise self._undecodable(row, index, "cannot be read") from error
        for index, default in self._defaults:
            if values[index] is None:
                values[index] = default
        return self.record(**dict(zip(self.columns, values, strict=True)))

    def _undecodable(self, row: Sequence[Any], index: int, problem: str) -> Undecodable:
        key = tuple(row[self.columns.index(column)] for column in self.key)
        url = row[self.columns.index("url")] if "url" in self.columns else None
        return Undecodable(self.name, key, self.columns[index], problem, url if isinstance(url, str) else None)

    def update(self, record: R, columns: Sequence[str] = ()) -> tuple[str, Row]:
        """The statement and values that write `columns` (all beside the key if none is named) of the record's row."""
        written = columns or self._beside_key
        assignments = ", ".join([f"{column} = ?" for column in written])
        sql = f"UPDATE {self.name} SET {assignments} WHERE {self._where_key}"
        return sql, self.encode(record, (*written, *self.key))

    def _written(self, column: str, value: Any) -> Any:
        converter = self._converters.get(column)
        return value if value is None or converter is None else converter.write(value)


def _kind_of(field: Field[Any]) -> type:
    """What a field without a converter holds, if it holds anything."""
    return int if str(field.type).startswith("int") else str
