"""The kind of change of the records of a source of Streamling."""

from __future__ import annotations

from penstock.core.names import derived_name
from penstock.spec.dialects.options.reading import Reading
from penstock.spec.dialects.options.trees import Tree
from penstock.spec.dialects.streamling.nodes import Fact, Pipeline, columns_of, with_operations
from penstock.spec.dialects.streamling.queries import OPERATION, translate_condition
from penstock.spec.tree.nodes import ScalarNode

HEADERS = "__headers"
"""The column of the headers of records, as sources of topics have it."""
_HEADER = f"CAST(try_element_at(filter({HEADERS}, h -> h.key = 'dbz.op'), -1).value AS STRING)"
_KIND = (
    f"CASE lower({_HEADER}) WHEN 'c' THEN 'i' WHEN 'r' THEN 'i' WHEN 'u' THEN 'u' "
    f"WHEN 'd' THEN 'd' ELSE coalesce({_HEADER}, 'i') END"
)


def add_inserts(fact: Fact, reading: Reading, pipeline: Pipeline, tree: dict[str, Tree]) -> None:
    """Adds a source whose rows are inserts, unless they have the kind of change themselves."""
    name = pipeline.names[fact.name.lower()]
    records = derived_name(name, "_records")
    pipeline.add("sources", records, tree, reading, fact.key)
    pipeline.add("transforms", name, with_operations(records), reading, fact.key)


def add_changes(
    fact: Fact, reading: Reading, pipeline: Pipeline, tree: dict[str, Tree], *,
    known: object, filter_: object,
) -> None:  # fmt: skip
    """Adds a source whose records have the kind of change in a header.

    A column of this name in the records is used as it is. With `known` columns there is none.
    """
    name = pipeline.names[fact.name.lower()]
    records = derived_name(name, "_records")
    key = columns_of(reading.get("primary_key"))
    pipeline.add("sources", records, {**tree, "primary_key": key or None}, reading, fact.key)
    kind, dropped = _KIND, HEADERS
    if known is None:
        changes = derived_name(name, "_changes")
        pipeline.add("transforms", changes, with_operations(records, ""), reading, fact.key)
        kind = f"CASE WHEN {OPERATION} <> '' THEN {OPERATION} ELSE {_KIND} END"
        dropped = f"{HEADERS}, {OPERATION}"
        records = changes
    elif isinstance(known, dict) and OPERATION in known:
        kind, dropped = f"coalesce({OPERATION}, {_KIND})", f"{HEADERS}, {OPERATION}"
    where = f" WHERE {translate_condition(filter_)}" if isinstance(filter_, ScalarNode) else ""
    sql = f"SELECT * EXCEPT ({dropped}), {kind} AS {OPERATION} FROM {records}{where}"
    query: dict[str, Tree] = {"type": "sql", "sql": sql, "primary_key": key or None}
    pipeline.add("transforms", name, query, reading, fact.key)
