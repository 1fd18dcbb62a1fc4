"""Names and values that would break a statement, written to a system and read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from database_tables import read
from penstock.core.errors import OptionError, PenstockError
from penstock.sdk import BatchId, Context, Read
from penstock.sdk.columns.names import fold
from penstock.sdk.database.listing import ListedSource
from penstock.sdk.operations import Operation

Options = dict[str, Any]
Rows = Sequence[Sequence[str]]

MARKS = "a'b\"c`d;--/*#\\%s{0}${a}:b::int$1$$?? @&|<>=,()[]!"
"""Characters with a meaning in SQL, in formats of texts, or in a client library."""
NAMES = (
    MARKS, "'", '"', "`", "''", '""', "\\", "\\'", "*/a", "%", "a, b", '"a", "b"', "x\ny", "\t",
    "\x01\x1f\x7f", "\x1b[31m", "é", "e\u0301", "\u202eabc", "עברית", "😀", "\u200b", "\ufeffa",
    "select", "Table", "NULL", "rowid", "1", "1e5", "-1", " ", " a", "a ", "a.b", ".", "..", "$a",
    "*", "Pair", "a\0b", "x" * 63, "x" * 64, "ü" * 31 + "a", "ü" * 32, "x" * 128, "x" * 300,
)  # fmt: skip
FEW_NAMES = (MARKS, "\\", '"a", "b"', "x\ny", " ", "Pair", "select", "a\0b")
TEXTS = (
    *NAMES[: NAMES.index("a\0b")], "); DROP TABLE parent; --", "'); DROP TABLE parent; --",
    '"; DROP TABLE parent; --', "\\n", "a\\", "%%", "%(a)s", "{}", "a\rb", "\u2028", "null", "NaN",
    "true", "0x10", "pair", "PAIR", "[1]", "{\"$ne\": 1}", "=1+1", "e\u0301\u0301", "👩‍👩‍👧",
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A system: its sink and its source with the options of a table of a name.

    With `key` this column is the key of each table. If the system `folds` names, names of tables
    that differ only by case are one table.
    """

    sink: Any
    source: Any
    options: Callable[[str], Options]
    key: str | None = None
    looks_up: bool = True
    folds: bool = False
    names: Sequence[str] = NAMES
    without: frozenset[str] = frozenset()
    """Columns that the server of the tests does not take, unlike the system."""

    def rejected_tables(self) -> set[str]:
        """Writes a row to a table of each name and reads it. Returns the rejected names."""
        rejected, written = set(), set()
        for number, name in enumerate(self.names):
            rows = [(str(number), name.replace("\0", ""))]
            with rejection(name, rejected):
                table = Table(self, name, (self.key or "k", "v"), (self.key or "k",))
                table.write(rows)
                assert table.read() == rows, name
                written.add(fold(name) if self.folds else name)
        if issubclass(self.source, ListedSource):
            with closing(self.made(self.source, "k").connect()) as connection:
                tables = connection.tables()
                for each in tables:
                    assert each.name not in written or connection.columns(each) is not None
            listed = {each.name for each in tables}
            assert written <= ({*map(fold, listed)} if self.folds else listed)
        return rejected

    def rejected_columns(self) -> set[str]:
        """Writes, replaces, deletes and looks up rows of columns of all names.

        Returns the names that are rejected.
        """
        rejected: set[str] = set()
        names = [name for name in self.names if name not in self.without]
        for name in names:
            with rejection(name, rejected):
                self.made(self.sink, "columns").check_schema(pa.schema([(name, pa.string())]))
        accepted = [name for name in names if name not in rejected]
        key = (self.key,) if self.key else (accepted[0], accepted[2])
        columns = (*key, *(name for name in accepted if name not in key))
        one, two, three, new = (
            tuple(f"{number} {place}" for place in range(len(columns))) for number in range(4)
        )
        new = (*one[: len(key)], *new[len(key) :])
        table = Table(self, "columns", columns, key)
        table.write([one, two, three])
        table.write([new, two], [Operation.UPDATE, Operation.DELETE])
        assert table.read() == [new, three]
        if self.looks_up:
            assert table.found([one, two]) == [new]
        return rejected

    def check_values(self) -> None:
        """Writes, replaces, deletes and looks up rows by keys of all texts."""
        pairs = [*zip(TEXTS, reversed(TEXTS), strict=True)]
        table = Table(self, "values", (self.key or "k", "v"), (self.key or "k",))
        table.write(pairs)
        deleted, changed = pairs[::3], [(key, f"{key} new") for key, _ in pairs[1::3]]
        kinds = [Operation.UPDATE] * len(changed) + [Operation.DELETE] * len(deleted)
        table.write([*changed, *deleted], kinds)
        expected = sorted([*changed, *pairs[2::3]])
        assert table.read() == expected
        if self.looks_up:
            assert table.found(pairs) == expected

    def made(self, kind: Any, table: str, *, lookup: bool = False) -> Any:
        """Returns a sink or a source of a table."""
        config = kind.config_type.model_validate(self.options(table))
        return kind.create(config, replace(Context(node=f"rows of {table}"), lookup=lookup))


@dataclass
class Table:
    """A table of a target, with columns of text and a primary key."""

    target: Target
    name: str
    columns: Sequence[str]
    key: tuple[str, ...]
    batches: int = 0

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return pa.schema([(column, pa.string()) for column in self.columns])

    def write(self, rows: Rows, operations: Sequence[Operation] = ()) -> None:
        """Upserts rows, or applies operations. All rows are accepted."""
        batch = BatchId("q", self.batches)
        self.batches += 1
        sink = self.target.made(self.target.sink, self.name)
        sink.mode, sink.primary_key = "upsert", self.key
        sink.check_schema(self.schema)
        sink.check()
        sink.prepare(self.schema)
        client = sink.open()
        kinds = pa.array([each.value for each in operations]) if operations else None
        with closing(client) if hasattr(client, "close") else nullcontext():
            writer = sink.writer(client, batch, 0, self.schema)
            failures = writer.write(self._batch(self.schema, rows), None, kinds)
            assert [each.error.message for each in failures] == []
            sink.commit(batch, [writer.commit()])

    def read(self) -> Rows:
        """Returns all rows in order. The source finds the same columns and the same key."""
        source = self.target.made(self.target.source, self.name)
        with closing(source):
            found = source.infer_schema()
            assert [name for name in found.names if not name.startswith("penstock_")] == [
                *self.columns
            ]
            assert source.infer_primary_key() in ((), self.key)
            source.columns = self.schema
            rows, errors, _ = read(source)
        assert errors == []
        return sorted(tuple(row[name] for name in self.columns) for row in rows)

    def found(self, rows: Rows) -> Rows:
        """Looks up the keys of rows. Returns the rows that are found, in order."""
        lookup = self.target.made(self.target.source, self.name, lookup=True)
        lookup.primary_key = self.key
        lookup.prepare_lookup()
        lookup.columns = self.schema
        client, asked = lookup.open(), Read()
        keys = self._batch(self.schema, rows).select(list(self.key))
        found = lookup.lookup(client, keys, asked).to_pylist()
        lookup.close_client(client)
        assert asked.bad == []
        return sorted(tuple(row[name] for name in self.columns) for row in found)

    @staticmethod
    def _batch(schema: pa.Schema, rows: Rows) -> pa.RecordBatch:
        arrays = [pa.array(values, pa.string()) for values in zip(*rows, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


@contextmanager
def rejection(name: str, rejected: set[str]) -> Iterator[None]:
    """Adds a name that is rejected by an error of the option, or one that has the name."""
    try:
        yield
    except (ValidationError, OptionError):
        rejected.add(name)
    except PenstockError as error:
        assert name.strip()[:20].replace("\0", "\\0") in error.message, (name, error.message)
        rejected.add(name)


def quoted(name: str) -> str:
    """Returns the name of a table as an option has it."""
    return '"' + name.replace('"', '""') + '"'
