"""IDs of dead letters without a position."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

from penstock.core.errors import RecordError
from penstock.engine.failures.dead_letter_files import read_dead_letters
from penstock.engine.tasks.dead_letter_writer import Spool, assign_unique_ids


def test_equal_rows_have_ids_without_a_common_prefix(tmp_path: Path) -> None:
    """A prefix of an ID selects one dead letter."""
    writer = Spool("p", "q", "t", "transform", directory=str(tmp_path)).begin(0, 0)
    for _ in range(20):
        writer.add(b'{"id": 1}', RecordError("Division by zero."))
    writer.close()
    (path,) = tmp_path.rglob("*.arrow")
    dead_letters = read_dead_letters(path)
    ids = assign_unique_ids(dead_letters).column("id").to_pylist()
    assert assign_unique_ids(dead_letters).column("id").to_pylist() == ids
    assert all(a[:8] != b[:8] for a, b in combinations(ids, 2))
