"""The contract of sinks in pipelines, whose rows Spark writes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.sdk import Capability, Format, registry
from penstock.testing.contract import rows as sample
from penstock.testing.contract.applies import once_per_pipeline, requires, run_if
from penstock.testing.contract.pipeline import Pipeline
from penstock.testing.contract.rows import (
    Change,
    Row,
    apply_changes,
    make_changes,
    make_versions,
    sort_by_id,
)
from penstock.testing.contract.sink_harness import ReadRows, SinkHarness

KEYS = 50
_FIRST_VERSIONED, _FIRST_TYPED = 100, 200
_requires_no_deletes = run_if(
    lambda contract: Capability.DELETE not in contract.capabilities,
    lambda _: "another test checks the same with changes",
)


class SinkPipelineContract(SinkHarness):
    """The part of `SinkContract` that runs pipelines."""

    @once_per_pipeline
    @_requires_no_deletes
    @pytest.mark.spark
    def test_pipeline_resumes_after_failure(
        self, options: dict[str, Any], rows: ReadRows, pipeline: Any
    ) -> None:
        """Writes every type and nulls by Spark, over a failed run."""
        expected = sample.make_typed_rows()
        run: Pipeline = pipeline(fails_on=3)
        source = _create_source_node(expected, sample.EVERY_TYPE, batches=2)
        assert run.run(source=source, sink=self.create_node(options)).errors
        run.disable_failure()
        assert not run.run(source=source, sink=self.create_node(options)).errors
        self.assert_delivered(rows(sample.EVERY_TYPE), expected)

    @once_per_pipeline
    @requires(Capability.UPSERT)
    @_requires_no_deletes
    @pytest.mark.spark
    def test_pipeline_upsert_keeps_last_row_of_key(
        self, options: dict[str, Any], table: ReadRows, pipeline: Any
    ) -> None:
        """Writes several rows of each key in one batch of several partitions, by Spark."""
        written = make_versions(KEYS)
        source = _create_source_node(written, sample.SIMPLE, partitions=4)
        sink = {**self.create_node(options), "mode": "upsert", "primary_key": ["id"]}
        run: Pipeline = pipeline(schema=sample.SIMPLE)
        assert not run.run(source=source, sink=sink).errors
        assert sort_by_id(table(sample.SIMPLE)) == written[-KEYS:]

    @once_per_pipeline
    @requires(Capability.DELETE)
    @pytest.mark.spark
    def test_pipeline_applies_changes(
        self, options: dict[str, Any], table: ReadRows, pipeline: Any
    ) -> None:
        """Writes changes, several rows of each key, every type and nulls over a failed run.

        Spark writes the rows in two batches of two partitions, of which the second one fails once.
        """
        changes = _add_typed_rows(_add_versions(make_changes()))
        schema = sample.EVERY_TYPE.append(pa.field("_op", pa.string()))
        rows = [{**row, "_op": operation} for operation, row in changes]
        columns = {"operation_column": "_op", "primary_key": ["id"]}
        source = _create_source_node(rows, schema, batches=2, partitions=2, **columns)
        sink = {**self.create_node(options), "mode": "upsert"}
        run: Pipeline = pipeline(fails_on=6, schema=schema)
        assert run.run(source=source, sink=sink).errors
        run.disable_failure()
        assert not run.run(source=source, sink=sink).errors
        assert sort_by_id(table(sample.EVERY_TYPE)) == apply_changes(changes)


def _add_versions(changes: list[Change]) -> list[Change]:
    """Returns changes with several inserts of other keys after each of them."""
    versions = make_versions(len(changes))
    count = len(versions) // len(changes)
    mixed: list[Change] = []
    for number, change in enumerate(changes):
        rows = versions[number * count : (number + 1) * count]
        mixed += [change, *(("i", {**row, "id": _FIRST_VERSIONED + row["id"]}) for row in rows)]
    return mixed


def _add_typed_rows(changes: list[Change]) -> list[Change]:
    """Returns changes of `EVERY_TYPE`, with inserts of typed rows of other keys after them."""
    typed = sample.make_typed_rows()
    inserts = [("i", {**row, "id": _FIRST_TYPED + row["id"]}) for row in typed]
    return [*((operation, {**typed[-1], **row}) for operation, row in changes), *inserts]


def _create_source_node(rows: list[Row], schema: pa.Schema, **options: Any) -> dict[str, Any]:
    """Returns a node of a source in memory with these rows."""
    format_type = registry.find("format", "json")
    format_ = format_type(format_type.config_type())
    assert isinstance(format_, Format)
    encoded = format_.encode(pa.RecordBatch.from_pylist(rows, schema=schema))
    payloads = [payload.decode() for payload in encoded.payloads.to_pylist()]
    return {"type": "memory", "payloads": payloads, "format": "json", **options}
