"""One case: rows given at sources, and what is expected of them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from penstock.core.errors import PenstockError, PlanError
from penstock.core.location import Location
from penstock.core.text import did_you_mean
from penstock.plan.model import Plan
from penstock.spec.models import TestCase
from penstock.testing.difference import Difference, Row
from penstock.testing.result import Letters, Result

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from penstock.runtime.trial import Observed


Way = Literal["as_given", "restarted", "row_by_row"]
"""How a case's batches are run: as they are, stopped after the first and started again, or each
row as a batch of its own."""


@dataclass(frozen=True)
class Case:
    """A case of the plan's `tests`, by its place among them."""

    plan: Plan
    index: int
    pinned: Mapping[str, pa.Schema] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.spec.name

    @property
    def spec(self) -> TestCase:
        return self.plan.spec.tests[self.index]

    @property
    def where(self) -> Location:
        """Where its name stands."""
        return self.plan.pipeline.document.value(("tests", self.index, "name"))

    def place(self, *route: str | int) -> Location:
        """Where a part of it stands."""
        return self.plan.pipeline.document.value(("tests", self.index, *route))

    def run(self, session: SparkSession, way: Way = "as_given") -> Result:
        """Runs the case in a session of its own on the same Spark, with a state of its own."""
        began = time.perf_counter()
        differences: dict[str, Difference] = {}
        letters = Letters()
        try:
            seen = self._observe(session, way)
            error = seen.error
            if error is None and self.spec.error is None:
                differences = self._differences(seen.tables)
                letters = self._letters(seen.dead_letters)
        except PenstockError as raised:
            error = raised
        return self._judged(time.perf_counter() - began, differences, letters, error)

    def check(self, session: SparkSession, way: Way = "as_given") -> None:
        """Runs the case. Raises AssertionError with a report if it does not pass."""
        from penstock.testing.report import text

        result = self.run(session, way)
        assert result.passed, text(result)

    def _judged(
        self,
        seconds: float,
        differences: Mapping[str, Difference],
        letters: Letters,
        error: PenstockError | None,
    ) -> Result:
        from penstock.testing.result import is_error

        wanted = self.spec.error
        if wanted is not None and error is not None and is_error(wanted, error):
            error = None
        elif wanted is not None and error is None:
            return Result(self, seconds, differences, letters, no_error=True)
        return Result(self, seconds, differences, letters, error)

    def _observe(self, session: SparkSession, way: Way) -> Observed:
        from penstock.engine.build import Builder
        from penstock.engine.columns import to_arrow
        from penstock.plan.tap import fed, tapped
        from penstock.runtime.trial import Observed, Trial
        from penstock.testing.feed import Feed

        own = session.newSession()
        for name, value in self.plan.spec.runtime.spark.items():
            if own.conf.isModifiable(name):
                own.conf.set(name, str(value).lower() if isinstance(value, bool) else str(value))
        with TemporaryDirectory(prefix="penstock-") as directory:
            tap, captures = tapped(self.plan, self._nodes())
            closing = bool(tap.with_windows)
            feed = Feed(tap, self.spec.given, ("tests", self.index, "given"), self.pinned)
            sources = feed.sources(closing=closing, row_by_row=way == "row_by_row")
            tap = replace(fed(tap, sources), state=Path(directory))
            for stop_before in (1, None) if way == "restarted" else (None,):
                trial = Trial(tap, own, Path(directory), stop_before=stop_before)
                builder = Builder(tap, own, trial.state.spool, closed=closing)
                trial.run(builder, "closed" if closing else "caught_up")
            tables = {}
            for name, capture in captures.items():
                table = capture.table
                if table is None and trial.error is None and self.spec.expect.get(name):
                    above = tap.nodes[capture.context.node].inputs[0]
                    table = to_arrow(builder.types()[above]).empty_table()
                tables[name] = table
            return Observed(tables, trial.dead_letters(), trial.error)

    def _nodes(self) -> list[str]:
        """The nodes that have to be computed: those that are named, or else all sinks."""
        letters = self.spec.dead_letters or ()
        named = [*self.spec.expect, *(each.node for each in letters if each.node)]
        if self.spec.error or not named or any(each.node is None for each in letters):
            named += [node.name for node in self.plan.of("sink")]
        for name in self.spec.expect:
            if name not in self.plan.streams:
                raise PlanError(
                    f'"{name}" is a static table, so no rows flow there', code="no-stream",
                    where=self.place("expect", name),
                    hint="expect rows at a node that reads it",
                )  # fmt: skip
        return named

    def _differences(self, tables: Mapping[str, pa.Table]) -> dict[str, Difference]:
        from penstock.testing.difference import compare

        found = {}
        for name, rows in self.spec.expect.items():
            table = tables[name]
            expected = self._typed(name, rows, table)
            got = table.to_pylist() if table is not None else []
            found[name] = compare(expected, got, ordered=self.spec.ordered)
        return found

    def _typed(self, node: str, rows: Sequence[Row], table: pa.Table) -> list[Row]:
        from penstock.testing.values import Misfit, typed

        expected: list[Row] = []
        for at, row in enumerate(rows):
            values: dict[str, Any] = {}
            for name, value in row.items():
                route = ("expect", node, at, name)
                if name not in table.column_names:
                    raise PlanError(
                        f'"{node}" has no column "{name}"', code="unknown-column",
                        where=self.place(*route), hint=did_you_mean(name, table.column_names),
                    )  # fmt: skip
                try:
                    values[name] = typed(value, table.schema.field(name).type)
                except Misfit as misfit:
                    raise PlanError(
                        f'"{name}" {misfit.problem}', code="wrong-type",
                        where=self.place(*route, *misfit.steps), hint=misfit.hint,
                    ) from None  # fmt: skip
            expected.append(values)
        return expected

    def _letters(self, letters: pa.Table) -> Letters:
        from penstock.testing.result import compare_letters

        return compare_letters(self.spec.dead_letters or (), letters.to_pylist())
