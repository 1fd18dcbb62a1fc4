"""Some of the dead letters of a state directory: by node, code and id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import UserError
from penstock.core.text import did_you_mean


@dataclass(frozen=True)
class Count:
    """How many dead letters a node has of one code."""

    node: str
    code: str
    count: int


@dataclass(frozen=True)
class Selection:
    """What to choose by; None chooses all. `id` is an id or how it begins."""

    node: str | None = None
    code: str | None = None
    id: str | None = None

    def __bool__(self) -> bool:
        return any((self.node, self.code, self.id))

    def of(self, letters: pa.Table, nodes: Collection[str] = ()) -> pa.Table:
        """The letters chosen. Raises UserError for a name that neither they nor `nodes` have."""
        for key, value, known in (("node", self.node, nodes), ("code", self.code, ())):
            names = {*letters.column(key).to_pylist(), *known}
            if value is not None and value not in names:
                hint = did_you_mean(value, names)
                raise UserError(
                    f'there is no dead letter with {key} "{value}"',
                    code="no-dead-letter",
                    hint=hint,
                )
            if value is not None:
                letters = letters.filter(pc.equal(letters.column(key), value))
        if self.id is not None:
            letters = letters.filter(pc.starts_with(letters.column("id"), self.id))
            if not letters.num_rows:
                raise UserError(
                    f'there is no dead letter whose id begins with "{self.id}"',
                    code="no-dead-letter",
                    hint="penstock dead list shows the ids",
                )
        return letters


def counts(letters: pa.Table) -> list[Count]:
    """By node and code, the most frequent first."""
    pairs = Counter(
        zip(letters.column("node").to_pylist(), letters.column("code").to_pylist(), strict=True)
    )
    return [Count(node, code, count) for (node, code), count in pairs.most_common()]


def newest(letters: pa.Table, most: int) -> list[dict[str, Any]]:
    """The latest letters, the latest first."""
    rows: list[dict[str, Any]] = letters.to_pylist()
    return sorted(rows, key=lambda each: each["time"], reverse=True)[:most]
