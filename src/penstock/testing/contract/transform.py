"""The contract of transforms over batches."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from penstock.sdk import Failure
from penstock.sdk.columns.conform import conform
from penstock.sdk.columns.conversion import Conversion
from penstock.testing.contract.component import ComponentContract


class TransformContract(ComponentContract):
    """The contract of transforms. Set `component`; define the fixtures `options` and `input`."""

    format: ClassVar[str | None] = None  # type: ignore[misc]

    @pytest.fixture
    def input(self) -> pa.RecordBatch:
        """Returns rows that the transform accepts."""
        raise NotImplementedError("expected a fixture `input`")

    @pytest.fixture
    def create_transform(self, options: dict[str, Any]) -> Iterator[Callable[[], Any]]:
        """Yields a function that creates an open transform, as a task does."""
        transforms: list[Any] = []

        def create_transform() -> Any:
            transforms.append(pickle.loads(pickle.dumps(self.create_component(options))))
            transforms[-1].open()
            return transforms[-1]

        yield create_transform
        for transform in transforms:
            transform.close()

    @pytest.fixture
    def output(self, create_transform: Callable[[], Any], input: pa.RecordBatch) -> pa.Table:
        """Returns the output for `input`."""
        return apply(create_transform(), input)

    def test_output_has_the_columns_of_the_plan(
        self, options: dict[str, Any], input: pa.RecordBatch, output: pa.Table
    ) -> None:
        assert output.schema.names == self.create_component(options).output(input.schema).names

    def test_parts_of_a_batch_have_the_same_rows(
        self, create_transform: Callable[[], Any], input: pa.RecordBatch, output: pa.Table
    ) -> None:
        """Checks the rows of single rows: the search for a bad row repeats parts of a batch."""
        if not self.component.deterministic:  # type: ignore[attr-defined]
            pytest.skip("the transform is not deterministic")
        transform = create_transform()
        parts = [apply(transform, input.slice(row, 1)) for row in range(input.num_rows)]
        assert pa.concat_tables(parts).to_pylist() == output.to_pylist()

    def test_input_is_not_changed(
        self, create_transform: Callable[[], Any], input: pa.RecordBatch
    ) -> None:
        before = input.to_pylist()
        apply(create_transform(), input)
        assert input.to_pylist() == before

    def test_empty_batch_has_no_rows(
        self, create_transform: Callable[[], Any], input: pa.RecordBatch
    ) -> None:
        assert apply(create_transform(), input.slice(0, 0)).num_rows == 0


def apply(transform: Any, batch: pa.RecordBatch) -> pa.Table:
    """Returns the rows for a batch, cast to the columns of the output. No row may fail."""
    schema = transform.output(batch.schema)
    batches = []
    for each in transform.apply(batch):
        assert not isinstance(each, Failure), f"expected no failures, found {each}"
        batches.append(conform(each, schema, Conversion(nearest=True)))
    return pa.Table.from_batches(batches, schema)
