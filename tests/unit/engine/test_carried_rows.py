"""Rows that are carried over from batch to batch."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from penstock.engine.tasks.carried_rows import CarriedRows


def batch(*values: int | None) -> pa.RecordBatch:
    return pa.record_batch({"v": pa.array(values, pa.int64())})


def test_a_repeated_batch_has_the_rows_before_its_first_attempt(tmp_path: Path) -> None:
    assert CarriedRows(tmp_path / "t", 0).add_to(batch(1, 2)) == batch(1, 2)
    for _ in range(2):
        rows = CarriedRows(tmp_path / "t", 0)
        rows.save(rows.add_to(batch(1, 2)), [1])
    for _ in range(2):
        rows = CarriedRows(tmp_path / "t", 5)
        joined = rows.add_to(batch(3))
        assert joined == batch(2, 3)
        rows.save(joined, [0, 1])
    assert CarriedRows(tmp_path / "t", 9).add_to(batch(4)) == batch(2, 3, 4)
    CarriedRows(tmp_path / "t", 9).save(batch(4), [])
    assert sorted(file.name for file in (tmp_path / "t").iterdir()) == ["5", "9"]
    assert CarriedRows(tmp_path / "t", 10).add_to(batch(5)) == batch(5)


def test_a_batch_that_is_computed_from_a_part_of_its_rows_changes_nothing(tmp_path: Path) -> None:
    CarriedRows(tmp_path, 1).save(batch(1), [0])
    again = CarriedRows(tmp_path, 1, is_fixed=True)
    again.save(batch(2), [0])
    assert CarriedRows(tmp_path, 2).add_to(batch(3)) == batch(1, 3)


def test_rows_with_other_columns(tmp_path: Path) -> None:
    CarriedRows(tmp_path, 1).save(batch(1), [0])
    later = pa.record_batch({"new": ["x"], "v": pa.array([2], pa.int64())})
    assert CarriedRows(tmp_path, 2).add_to(later).to_pylist() == [
        {"new": None, "v": 1}, {"new": "x", "v": 2},
    ]  # fmt: skip
