"""Portions of a batch: no row is lost or moved, whatever the limits."""

from __future__ import annotations

from itertools import accumulate, pairwise, zip_longest

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.tasks.write_limits import WriteLimits, rebatch, split_by_bytes


def of(numbers: list[int]) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(numbers, pa.int64())})


@pytest.mark.slow
@given(
    st.lists(st.integers(0, 7), max_size=8), st.integers(1, 9), st.lists(st.integers(0, 5)),
    st.integers(1, 60),
)  # fmt: skip
def test_batches_of_a_size(sizes: list[int], most: int, lengths: list[int], max_bytes: int) -> None:
    count = sum(sizes)
    rows = pa.record_batch(
        {"n": range(count), "t": ["x" * n for n in (lengths * count)[:count]] or [""] * count}
    )
    bounds = [*accumulate(sizes, initial=0)]
    divided = [rows.slice(start, stop - start) for start, stop in pairwise(bounds)]
    found = [batch.to_pylist() for batch in rebatch(divided, most, max_bytes)]
    assert [row for batch in found for row in batch] == rows.to_pylist()
    for batch, following in zip_longest(found, found[1:], fillvalue=[]):
        size = sum(8 + len(row["t"]) for row in batch)
        assert 0 < len(batch) <= most and (size <= max_bytes or len(batch) == 1)
        # A batch ends because the next row does not fit.
        assert not following or len(batch) == most or size + 8 + len(following[0]["t"]) > max_bytes
    assert found == [batch.to_pylist() for batch in rebatch([rows], most, max_bytes)]


def test_without_a_limit_batches_are_as_they_come() -> None:
    batches = [of([1]), of([]), of([2, 3])]
    assert list(rebatch(iter(batches), None)) == batches


@pytest.mark.slow
@given(st.lists(st.none() | st.binary(max_size=9), max_size=12), st.integers(1, 20))
def test_cuts_by_bytes(payloads: list[bytes | None], most: int) -> None:
    ranges = list(split_by_bytes(len(payloads), pa.array(payloads, pa.binary()), most))
    assert [n for start, stop in ranges for n in range(start, stop)] == list(range(len(payloads)))
    sizes = [sum(len(p or b"") for p in payloads[start:stop]) for start, stop in ranges]
    assert all(
        size <= most or stop - start == 1 for size, (start, stop) in zip(sizes, ranges, strict=True)
    )


def test_a_write_is_as_large_as_the_limit() -> None:
    payloads = pa.array([b"ab", b"cd", None, b"e", b"fghij", b"k"], pa.binary())
    assert list(split_by_bytes(6, payloads, 4)) == [(0, 3), (3, 4), (4, 5), (5, 6)]


def test_rows_without_payloads_are_not_cut() -> None:
    assert (
        list(split_by_bytes(3, None, 1)) == [(0, 3)] and list(split_by_bytes(0, None, None)) == []
    )


def test_a_rate_is_kept_in_small_portions() -> None:
    assert WriteLimits.create(None, None, 100) == WriteLimits(10, None, 100)
    assert WriteLimits.create(3, None, 100) == WriteLimits(3, None, 100)
    assert WriteLimits.create(None, 5, 0.5) == WriteLimits(1, 5, 0.5)
    assert WriteLimits.create(7, 5, None).divide_among(2) == WriteLimits(7, 5, None)
    assert WriteLimits.create(None, None, 100).divide_among(4).rate == 25
