"""Shared inputs for building DataFrames: the plan, the session and the options."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from pyspark.sql import SparkSession

from penstock.engine.tasks.dead_letter_writer import Spool, Stage
from penstock.plan.model import Plan, Query
from penstock.plan.node import Node


@dataclass
class BuildContext:
    """The plan, the session and the options of DataFrames that are built.

    `spool` is the directory of the dead letter files; None makes a bad record an error. With
    `sentinel_only` the sources return only the row that closes all windows; with `with_sentinel`
    the sources append the sentinel row themselves, with `closes_windows` their readers append it
    to the last batch. Without `report_dead_letters` bad records are
    dropped silently. With `checks_rows` rows on which SQL fails leave a stream before its stateful
    operators, with `checks_joins` also below and above its joins, whose state may have only the
    `read_columns` of nodes downstream. `recomputed_for` is a parameter of the spools.
    With the `checkpoint` of a query its streams record their start offsets, and the late rows of
    its batches can be found, and its batches have a `wait` (see `Plan.wait`). Workers keep
    transforms open between the batches of a `run_id`.
    """

    plan: Plan
    session: SparkSession
    spool: Path | None = None
    sentinel_only: bool = False
    with_sentinel: bool = False
    closes_windows: bool = False
    report_dead_letters: bool = True
    checks_rows: bool = False
    checks_joins: bool = True
    read_columns: Mapping[str, frozenset[int]] = field(default_factory=dict)
    recomputed_for: str = ""
    checkpoint: Path | None = None
    wait: tuple[float | None, int | None] = (None, None)
    run_id: str = field(default_factory=lambda: uuid4().hex)

    def make_spool(self, node: Node, query: Query, stage: Stage) -> Spool:
        """Returns the spool of the bad records of a node."""
        directory = str(self.spool / query.name) if self.spool is not None else None
        return Spool(
            self.plan.name, query.name, node.name, stage, node.on_error, directory,
            self.report_dead_letters
            and (node.name in query.dead_letter_nodes or node.kind == "sink"),
            recomputed_for=self.recomputed_for,
        )  # fmt: skip

    def discard_recomputed(self, query: Query, number: int) -> None:
        """Removes the dead letters of a batch that was computed again (see `recomputed_for`)."""
        if self.spool is not None and self.recomputed_for:
            folder = self.spool / query.name / str(number) / self.recomputed_for
            shutil.rmtree(folder, ignore_errors=True)

    def has_late_rows(self, query: Query) -> bool:
        """Returns whether rows of a query can be late: whether a watermark closes its state."""
        return not self.sentinel_only and query in self.plan.with_windows

    def has_windows_below(self, node: Node) -> bool:
        """Returns whether a watermark of a node closes state."""
        return any(node.name in query.stream_nodes for query in self.plan.with_windows)
