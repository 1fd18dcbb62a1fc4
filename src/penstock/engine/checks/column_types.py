"""Columns of the nodes of a plan, from Spark's analysis, and the checks of all its queries."""

from __future__ import annotations

from pyspark.sql.types import StructType

from penstock.core.errors import PenstockError, raise_all
from penstock.engine.analysis.column_checks import check_sink_schema
from penstock.engine.analysis.errors import locate_errors
from penstock.engine.analysis.syntax import text_errors
from penstock.engine.build import Builder, collect_errors
from penstock.engine.checks.patterns import check_patterns
from penstock.engine.checks.stream_support import check_streamable
from penstock.engine.late.late_search import find_late_rows
from penstock.plan.queries import unread_queries


def column_types(
    builder: Builder, errors: dict[str, PenstockError] | None = None, *, unread: bool = False
) -> dict[str, StructType]:
    """Returns the columns of all sources and transforms from Spark. Reads no data.

    Checks the sinks, and with `unread` also transforms that no node reads, and the SQL texts below
    a node with an error. `errors` are known errors by node. Raises UserError, or ValidationErrors
    with the errors of all nodes.
    """
    plan = builder.plan
    types: dict[str, StructType] = {}
    errors = {} if errors is None else errors
    for node in plan.nodes.values():
        if node.name not in errors:
            with collect_errors(errors, node.name):
                check_patterns(plan, node, builder.session)
    unread_nodes = unread_queries(plan.nodes, plan.streams) if unread else ()
    for query in (*plan.queries, *unread_nodes):
        frames = builder.typed_frames(query, errors)
        types |= {name: frame.schema for name, frame in frames.items()}
        if query.root in frames and query.root in plan.streams:
            with collect_errors(errors, query.root):
                check_streamable(plan, query, frames[query.root], builder.session)
                if any(plan.nodes[n].late == "dead_letter" for n in query.stream_nodes):
                    find_late_rows(builder, query, frames[query.root], builder.computed_watermarks)
        for name in query.sinks:
            sink = plan.nodes[name]
            if sink.inputs[0] in frames:
                with collect_errors(errors, name), locate_errors(plan, sink):
                    check_sink_schema(sink, frames[sink.inputs[0]].schema)
    below = [node for name, node in plan.nodes.items() if name not in errors.keys() | types.keys()]
    if unread and below:
        builder.register_functions(builder.session)
        for node in below:
            with collect_errors(errors, node.name):
                raise_all(text_errors(plan, [node], builder.session))
    raise_all(errors.values())
    return types
