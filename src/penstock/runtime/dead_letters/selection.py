"""Selection of dead letters by node, code and ID."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import UserError
from penstock.core.text import did_you_mean
from penstock.runtime.dead_letters.dead_letter import DeadLetter, read_rows


@dataclass(frozen=True)
class Count:
    """Number of dead letters of a node with one code."""

    node: str
    code: str
    count: int


@dataclass(frozen=True)
class DeadLetterList:
    """Dead letters in order of arrival. `table` has the schema `DEAD_LETTER`."""

    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def ids(self) -> frozenset[str]:
        """The IDs of all letters."""
        return frozenset(self.table.column("id").to_pylist())

    def counts(self) -> list[Count]:
        """Counts letters by node and code, most frequent first."""
        columns = [self.table.column(name).to_pylist() for name in ("node", "code")]
        pairs = Counter(zip(*columns, strict=True))
        return [Count(node, code, count) for (node, code), count in pairs.most_common()]

    def newest(self, limit: int) -> list[DeadLetter]:
        """Returns the last `limit` letters, newest first."""
        times = self.table.column("time").to_pylist()
        order = sorted(range(len(times)), key=times.__getitem__, reverse=True)[:limit]
        return read_rows(self.table.take(pa.array(order, pa.int64())))


@dataclass(frozen=True)
class Selection:
    """Criteria of a selection. None selects all. `id` is the start of an ID."""

    node: str | None = None
    code: str | None = None
    id: str | None = None

    def __bool__(self) -> bool:
        return any((self.node, self.code, self.id))

    def select(self, dead_letters: pa.Table, nodes: Collection[str] = ()) -> DeadLetterList:
        """Returns the selected letters. Raises UserError for an unknown node, code or ID.

        `nodes` are further existing nodes.
        """
        for key, value, known in (("node", self.node, nodes), ("code", self.code, ())):
            names = {*dead_letters.column(key).to_pylist(), *known}
            if value is not None and value not in names:
                hint = did_you_mean(value, names)
                raise UserError(
                    f'there is no dead letter with {key} "{value}"',
                    code="no-dead-letter",
                    hint=hint,
                )
            if value is not None:
                dead_letters = dead_letters.filter(pc.equal(dead_letters.column(key), value))
        if self.id is not None:
            dead_letters = dead_letters.filter(pc.starts_with(dead_letters.column("id"), self.id))
            if not dead_letters.num_rows:
                raise UserError(
                    f'there is no dead letter whose ID starts with "{self.id}"',
                    code="no-dead-letter",
                    hint="List the IDs with penstock dead list.",
                )
        return DeadLetterList(dead_letters)


ALL = Selection()
