"""Checks of dynamic tables in SQL: the tables that a node checks, which must exist."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from penstock.core.errors import PenstockError, PlanError
from penstock.core.text import did_you_mean
from penstock.plan.node import Node
from penstock.spec.validate import Pipeline
from penstock.sql.dialect.table_checks import checked_tables


def with_checked_tables(
    node: Node, tables: Collection[str], pipeline: Pipeline, errors: list[PenstockError]
) -> Node:
    """Returns a node with the dynamic tables that its SQL checks or joins.

    `tables` are the names of the dynamic tables of the pipeline. Adds errors of unknown ones.
    """
    known = {table.lower(): table for table in tables}
    found = dict.fromkeys(name for name in node.inputs if name in tables)
    for sql in node.sql_texts:
        for name, index in checked_tables(sql.text):
            table = known.get(name.lower())
            if table is not None:
                found[table] = None
            elif pipeline.missing is None or not pipeline.missing.may_have(name):
                route, position = (*node.route, *sql.route), sql.position(index)
                error = _unknown_table(node, name, tables)
                error.where = pipeline.source_map.inside(route, *position, len(name))
                errors.append(error)
    return replace(node, checked_tables=tuple(found))


def declared_tables(pipeline: Pipeline) -> Iterator[str]:
    """Yields the names of the dynamic tables of a pipeline."""
    for name, transform in pipeline.spec.transforms.items():
        if transform.type == "dynamic_table":
            yield name


def _unknown_table(node: Node, name: str, tables: Collection[str]) -> PlanError:
    hint = did_you_mean(name, tables) or "Add a transform of type: dynamic_table."
    message = f'{node.label}: there is no dynamic table "{name}"'
    return PlanError(message, code="unknown-table", hint=hint)
