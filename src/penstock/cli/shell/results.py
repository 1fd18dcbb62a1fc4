"""Results: the rows of a query as aligned text, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from penstock.connectors.print import PrintSink, PrintSinkConfig
from penstock.plan.model import Plan
from penstock.sdk import Context
from penstock.sdk.columns.text_table import cell, heading, text_table

MAX_ROWS = 1000
"""The maximum number of printed rows of a batch."""


class Results(PrintSink):
    """A sink that prints rows below one heading. The heading is repeated if a column widens."""

    def __init__(self, context: Context) -> None:
        super().__init__(PrintSinkConfig(table=True, max_records=MAX_ROWS), context)
        self._widths: list[int] = []

    def format_rows(
        self, header: Sequence[tuple[str, bool]], rows: Sequence[Sequence[str]]
    ) -> list[str]:
        names = [name for name, _ in header]
        needed = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
        known, first = self._widths or [0] * len(needed), not self._widths
        self._widths = [max(pair) for pair in zip(known, needed, strict=True)]
        lines = text_table(header, rows, min_widths=self._widths)
        return lines if first or self._widths != known else lines[1:]


def print_results(plan: Plan, sink: str) -> Plan:
    """Returns the plan with results in place of a print sink."""
    node = plan.nodes[sink]
    results = Results(node.component.context)
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
