"""The records that SQL fails on, told from the others by trying parts of the batch."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from penstock.core.errors import PlanError, RecordError, Rejected
from penstock.core.text import plural
from penstock.engine.build import Builder
from penstock.engine.columns import to_arrow
from penstock.plan.model import Node, Query
from penstock.plan.queries import upstream
from penstock.sdk import isolate
from penstock.sdk.kit.rowtext import payload_of

MOST_CULPRITS = 1000
"""More bad records than this in one batch are a mistake in the SQL, not in the data."""

_DATA = re.compile(r"\[([A-Z_.0-9]+)\] (.*?)(?: SQLSTATE: (22\w{3})|$)", re.DOTALL)
_ADVICE = re.compile(
    r"\s*(Use `?try_|To return NULL|If necessary set|Correct the value).*", re.DOTALL
)


def data_error(error: BaseException) -> RecordError | None:
    """The error as a record's, if it is one of Spark's about a value (SQLSTATE class 22)."""
    if not isinstance(error, PySparkException):
        return None
    for found in _DATA.finditer(str(error)):
        if (found[3] or "").startswith("22"):
            code = found[1].split(".")[0].lower().replace("_", "-")
            return Rejected(" ".join(_ADVICE.sub("", found[2]).split()), code=code)
    return None


@dataclass
class Bisection:
    """One batch of a query whose trunk remembers nothing, on the way to one sink."""

    builder: Builder
    query: Query
    sink: Node
    trunk: DataFrame

    def __post_init__(self) -> None:
        above = upstream([self.sink.name], self.builder.plan.nodes)
        below = tuple(name for name in self.query.below if name in above)
        self._way = replace(self.query, below=below)
        self._tries = replace(self.builder, reports=False)

    def divert(self, number: int, error: Exception) -> DataFrame:
        """The trunk's good rows, in one partition, which keeps their order.

        The bad ones are dead letters of the node that they failed.
        Raises `error` again where no single record can be blamed, and PlanError beyond
        `MOST_CULPRITS`.
        """
        table = self.trunk.toArrow().combine_chunks()
        culprits: list[int] = []
        for start, _, result in isolate(
            table.num_rows, lambda a, b: self._attempt(table.slice(a, b - a)), _blame
        ):
            if isinstance(result, RecordError):
                culprits.append(start)
                if len(culprits) > MOST_CULPRITS:
                    raise PlanError(
                        f"{self.sink.label}: more than {plural(MOST_CULPRITS, 'record')} of one "
                        f"batch fail: {result.message}",
                        code=result.code,
                        hint="use try_cast, try_divide or a filter",
                    )
        if not culprits:
            raise error
        self._report(table, culprits, number)
        keep = pa.array([i for i in range(table.num_rows) if i not in set(culprits)], pa.int64())
        return self._frame(table.take(keep)).coalesce(1)

    def _attempt(self, rows: pa.Table, node: str | None = None) -> None:
        """Computes everything on the way to the sink (or to `node`) and throws it away."""
        frames = self._tries.batch(self._way, self._frame(rows))
        target = frames[node or self.sink.inputs[0]]
        target.write.format("noop").mode("overwrite").save()

    def _frame(self, rows: pa.Table) -> DataFrame:
        session = self.trunk.sparkSession
        if rows.num_rows:
            return session.createDataFrame(rows, self.trunk.schema)
        return session.createDataFrame([], self.trunk.schema)

    def _report(self, table: pa.Table, culprits: list[int], number: int) -> None:
        letters = {}
        for index in culprits:
            row = table.slice(index, 1)
            node, error = self._failed(row)
            if node.name not in letters:
                spool = self.builder.spool_of(node, self.query, "transform")
                letters[node.name] = spool.begin(number, "sql")
            letters[node.name].add(self._input(node, row), error)
        for each in letters.values():
            each.close()

    def _failed(self, row: pa.Table) -> tuple[Node, RecordError]:
        """The first node on the way to the sink that fails on the row, and how."""
        for name in self._way.below:
            node = self.builder.plan.nodes[name]
            try:
                self._attempt(row, name)
            except PySparkException as error:
                return node, _blame(error)
        raise AssertionError("a record that failed does not fail again")

    def _input(self, node: Node, row: pa.Table) -> bytes:
        """The node's own input row, as its payload."""
        frames = self._tries.batch(self._way, self._frame(row))
        streams = [n for n in node.inputs if n in frames and not self.builder.plan.nodes[n].static]
        given = frames[streams[0]].toArrow().cast(to_arrow(frames[streams[0]].schema))
        (batch, *_) = given.combine_chunks().to_batches() or [None]
        return payload_of(batch, 0) if batch is not None else b"{}"


def _blame(error: Exception) -> RecordError:
    found = data_error(error)
    if found is None:
        raise error
    return found
