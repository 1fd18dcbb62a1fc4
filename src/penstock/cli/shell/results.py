"""Results: the rows of a query as aligned text, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from penstock.connectors.print import PrintSink, PrintSinkConfig
from penstock.plan.model import Plan
from penstock.sdk import Context
from penstock.sdk.columns.text_table import GrowingTable, cell, heading, text_table

MAX_ROWS = 1000
"""The maximum number of printed rows of a batch."""


class Results(PrintSink):
    """A sink that prints rows below one heading."""

    def __init__(self, context: Context) -> None:
        super().__init__(PrintSinkConfig(table=True, max_records=MAX_ROWS), context)
        self._table = GrowingTable()

    def format_rows(
        self, header: Sequence[tuple[str, bool]], rows: Sequence[Sequence[str]]
    ) -> list[str]:
        return self._table.lines(header, rows)


class InsertedResults(Results):
    """A sink that prints the rows of a changelog without updates and deletes."""

    shows_operations = False


def print_results(plan: Plan, sink: str, *, only_inserts: bool) -> Plan:
    """Returns the plan with results in place of a print sink."""
    node = plan.nodes[sink]
    kind = InsertedResults if only_inserts else Results
    results = kind(node.component.context)
    results.format, results.mode = node.sink.format, node.sink.mode
    results.primary_key = node.sink.primary_key
    nodes = {**plan.nodes, sink: replace(node, component=results)}
    return replace(plan, nodes=nodes)


def print_rows(table: pa.Table) -> None:
    """Prints the rows of a table."""
    columns = [
        [cell(value, field) for value in column]
        for column, field in zip(table.columns, table.schema, strict=True)
    ]
    print("\n".join(text_table(map(heading, table.schema), zip(*columns, strict=True))))
