"""Tables with the own types of a database, copied by Penstock from one to another.

Each value is copied as it is, or rejected with the name of its column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from crossing import by_hand
from crossing.systems import Options


@dataclass(frozen=True)
class Column:
    """A column of a type, with literals of SQL that are copied; the first is in the other rows.

    `unread` are literals that have no value in the type of rows, and `unwritten` values of that
    type which the column cannot hold.
    """

    type: str
    values: Sequence[str]
    unread: Sequence[str] = ()
    unwritten: Sequence[Any] = ()


@dataclass(frozen=True)
class Tables:
    """Two tables of the same columns, of which the second is empty.

    `query` executes a statement and returns its rows, and `text` makes the SQL of a column as text.
    """

    query: Callable[[str], Sequence[tuple[Any, ...]]]
    full: Options
    empty: Options
    text: Callable[[str], str]
    columns: Mapping[str, Column]

    def fill(self) -> None:
        """Inserts a row for each value, named by its column and its number."""
        ordinary = [column.values[0] for column in self.columns.values()]
        rows = []
        for place, (name, column) in enumerate(self.columns.items()):
            for number, literal in enumerate([*column.values, *column.unread]):
                values = [*ordinary[:place], literal, *ordinary[place + 1 :]]
                rows.append(f"('{name} {number}', {', '.join(values)})")
        names = ", ".join(self.columns)
        self.query(f"INSERT INTO {self.full['table']} (id, {names}) VALUES {', '.join(rows)}")

    def unread(self) -> set[str]:
        """Returns the IDs of the rows that cannot be read."""
        return {
            f"{name} {len(column.values) + number}"
            for name, column in self.columns.items()
            for number in range(len(column.unread))
        }

    def unwritten(self, read: pa.RecordBatch) -> pa.RecordBatch:
        """Returns rows with the values that cannot be written, and the ordinary row."""
        ordinary = read.slice(0, 1).set_column(0, read.schema.field(0), pa.array(["ordinary"]))
        rows = [ordinary]
        for name, column in self.columns.items():
            for number, value in enumerate(column.unwritten):
                wrong = pa.array([value], ordinary.schema.field(name).type)
                place = ordinary.schema.names.index(name)
                row = ordinary.set_column(place, ordinary.schema.field(name), wrong)
                id_ = pa.array([f"{name} bad {number}"])
                rows.append(row.set_column(0, ordinary.schema.field(0), id_))
        return pa.Table.from_batches(rows, ordinary.schema).combine_chunks().to_batches()[0]

    def texts(self, options: Options) -> dict[str, dict[str, Any]]:
        """Returns the values of a table as text, by ID and column."""
        items = ", ".join(self.text(name) for name in self.columns)
        rows = self.query(f"SELECT id, {items} FROM {options['table']}")
        return {row[0]: dict(zip(self.columns, row[1:], strict=True)) for row in rows}


def check(tables: Tables, directory: Path) -> list[str]:
    """Copies a table. Returns the values that were changed, lost, or rejected without a name."""
    tables.fill()
    before = tables.texts(tables.full)
    rows, letters = by_hand.read(directory / "full", tables.full)
    lines = _compare_letters(tables.unread(), letters)
    batch = rows.combine_chunks().to_batches()[0]
    lines += _compare_letters(set(), by_hand.write(directory / "empty", tables.empty, batch))
    after = tables.texts(tables.empty)
    for id_ in before.keys() - letters.keys():
        name = id_.partition(" ")[0]
        found = after.get(id_, {}).get(name)
        if found != before[id_][name]:
            lines.append(f"{id_}: {found!r}, expected {before[id_][name]!r}")
    bad = tables.unwritten(batch)
    rejected = by_hand.write(directory / "bad", tables.empty, bad, 1)
    lines += _compare_letters({*bad.column("id").to_pylist()} - {"ordinary"}, rejected)
    after = tables.texts(tables.empty)
    lines += [] if "ordinary" in after else ["ordinary: missing"]
    lines += [
        f"{id_}: was stored as {row[id_.partition(' ')[0]]!r}"
        for id_, row in after.items()
        if " bad " in id_
    ]
    return sorted(lines)


def _compare_letters(expected: set[str], letters: Mapping[str, str]) -> list[str]:
    lines = [f"{id_}: no dead letter" for id_ in expected - letters.keys()]
    for id_, message in letters.items():
        if id_ not in expected:
            lines.append(f"{id_}: unexpected dead letter: {message}")
        elif not re.search(rf"[\"'`]{id_.partition(' ')[0]}[\"'`]", message):
            lines.append(f"{id_}: dead letter without its column: {message}")
    return lines
