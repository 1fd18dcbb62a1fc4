"""Tables of a script that are dynamic tables: `WITH (connector = 'dynamic_table')`."""

from __future__ import annotations

from penstock.core.errors import SpecError
from penstock.spec.script.option_tree import OptionTree
from penstock.spec.script.statements import CreateTable
from penstock.spec.script.tree_nodes import text_node
from penstock.spec.tree.nodes import File, Node, ScalarNode

CONNECTOR = "dynamic_table"


def is_dynamic(table: CreateTable) -> bool:
    """Returns whether a table is a dynamic table."""
    options = {option.name: option.value for option in table.options or []}
    connector = options.get("connector")
    return isinstance(connector, ScalarNode) and connector.value == CONNECTOR


def dynamic_table_node(
    file: File, table: CreateTable, options: OptionTree, query: Node | None
) -> Node:
    """Returns the transform of a dynamic table. Raises SpecError for other than one column."""
    columns, key = table.columns.columns, table.columns.primary_key
    if len(columns) > 1:
        raise SpecError(
            f'a dynamic table has one column, and "{table.name.value}" has {len(columns)}',
            code="column-count",
            where=file.location(columns[1].name.start, columns[1].name.end),
            hint="Set time_column for the time at which a value was added.",
        )
    if key and (
        len(key) > 1 or not columns or key[0].value.lower() != columns[0].name.value.lower()
    ):
        raise SpecError(
            "the primary key of a dynamic table is its column",
            code="invalid-option",
            where=file.location(key[0].start, key[0].end),
            hint="Remove PRIMARY KEY.",
        )
    for column in columns:
        options.add("column", text_node(file, column.name), column.name)
        options.add("column_type", text_node(file, column.type), column.type)
    if query is not None:
        options.add("sql", query, table.name)
    return options.node()
