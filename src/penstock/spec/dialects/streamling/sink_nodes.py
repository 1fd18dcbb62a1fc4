"""Nodes of a sink of Streamling: transforms in front of it, and itself."""

from __future__ import annotations

from penstock.core.names import derived_name
from penstock.spec.dialects.options.reading import Reading
from penstock.spec.dialects.options.trees import Tree
from penstock.spec.dialects.streamling.nodes import Fact, Pipeline, columns_of, with_operations
from penstock.spec.dialects.streamling.queries import OPERATION
from penstock.spec.dialects.streamling.telemetry import read_labels


class SinkNodes:
    """The nodes of a sink: transforms in front of it, each of which has a suffix, and itself."""

    def __init__(self, fact: Fact, reading: Reading, pipeline: Pipeline, type_: str) -> None:
        self.fact, self.reading, self.pipeline = fact, reading, pipeline
        self.name = pipeline.names[f"sinks.{fact.name.lower()}"]
        self.input = pipeline.input_of(reading)
        self.labels = read_labels(reading, type_)
        own = columns_of(reading.get("primary_key"))
        self.key = own or pipeline.primary_key(reading.text("from").lower())

    def above(self, suffix: str, tree: dict[str, Tree]) -> None:
        """Adds a transform in front of the sink."""
        name = derived_name(self.name, suffix)
        self.pipeline.add("transforms", name, tree, self.reading, self.fact.key)
        self.input = name

    def with_operations(self) -> None:
        """Adds the kind of change to rows that lack it."""
        self.above("_kinds", with_operations(self.input))

    def select(self, suffix: str, sql: str) -> None:
        """Adds a query over the rows, whose name is `{input}` in its text."""
        self.above(suffix, {"type": "sql", "sql": sql.format(input=self.input)})

    def changes(self) -> None:
        """Declares the kind of change as the operation of the rows."""
        tree = {**with_operations(self.input), "operation_column": OPERATION}
        self.above("_changes", {**tree, "primary_key": self.key or None})

    def inserts(self) -> None:
        """Leaves out deletes, and reports that the rows have no primary key."""
        settings, findings = self.pipeline.settings, self.reading.findings
        enforced = settings.is_true("enforce_primary_keys")
        report = findings.error if enforced else findings.warn
        report(
            f"{self.reading.subject} has no primary key: all rows are inserted, and deletes have "
            "no effect",
            self.reading.node.location, code="missing-option",
            hint="add primary_key: the columns of the key",
        )  # fmt: skip
        self.with_operations()
        where = f"WHERE lower({OPERATION}) <> 'd'"
        self.select("_rows", f"SELECT * EXCEPT ({OPERATION}) FROM {{input}} {where}")

    def write(self, tree: dict[str, Tree], section: str = "", rows: str = "") -> None:
        """Adds the sink. `section` has the settings of its batches, `rows` is their size."""
        batch = {"max_records": int(rows)} if rows.isdigit() else self._batch(section)
        node = {**tree, "from": self.input, "batch": batch, "labels": self.labels}
        self.pipeline.add("sinks", self.name, node, self.reading, self.fact.key)

    def _batch(self, section: str) -> dict[str, Tree] | None:
        settings, rows = self.pipeline.settings, self.reading.value("batch_size")
        seconds = self.reading.seconds("batch_flush_interval")
        if section and not isinstance(rows, int):
            rows = settings.number(f"{section}.batch_size")
        if section and seconds is None:
            text = settings.text(f"{section}.batch_flush_interval")
            return {"max_records": rows, "interval": text or None} if rows or text else None
        interval = None if seconds is None else f"{round(seconds * 1e6)}us"
        return {"max_records": rows, "interval": interval} if rows or interval else None
