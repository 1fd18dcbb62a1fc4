"""The rows of a batch for a sink without the records on which SQL fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from pyspark.sql import DataFrame

from penstock.engine.build import Builder
from penstock.engine.failures.bisect import Bisection
from penstock.engine.failures.separation import FailingRowFilter, NotSeparable, branch_of
from penstock.plan.model import Query
from penstock.plan.node import Node


@contextmanager
def valid_rows(
    builder: Builder,
    query: Query,
    sink: Node,
    root: DataFrame,
    on_step: Callable[[], None],
    number: int,
    error: Exception,
) -> Iterator[DataFrame]:
    """Yields the rows for a sink of the records on which SQL does not fail.

    The records are searched by bisection if the failing ones cannot be separated. `on_step` is
    called at each step of the search. `error` is the failure of the batch with this number.
    """
    search = (builder, query, sink, root, on_step)
    with ExitStack() as stack:
        try:
            separation = FailingRowFilter(*search)
            rows = stack.enter_context(separation.valid_rows(number))
        except NotSeparable:
            builder.discard_recomputed(query, number)
            valid = Bisection(*search).remove_failing_rows(number, error)
            if builder.updating is not None:
                builder = replace(builder, updating=builder.updating.again())
            branch = branch_of(builder, query, sink)
            rows = builder.build_batch(branch, valid)[sink.inputs[0]]
        yield rows
