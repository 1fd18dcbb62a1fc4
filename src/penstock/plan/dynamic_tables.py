"""Dynamic tables: the nodes that a transform `dynamic_table` stands for.

These are a lookup table with the name of the transform and, if the table has a query, a transform
that computes the values and a sink that adds them to the table, the fill.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Literal

from penstock.connectors.sqlite.state_table import StateTable, StateTableSink
from penstock.core.names import derived_name
from penstock.core.text import did_you_mean
from penstock.plan.components import Components
from penstock.plan.lookups import lookup_types
from penstock.plan.node import Node
from penstock.sdk import Capability, Component, LookupSource, registry
from penstock.spec.fields import fields_at
from penstock.spec.node_models import SinkSpec, SourceSpec
from penstock.spec.source_map import Route
from penstock.transforms.dynamic_table import TYPE, DynamicTable

_OF_STORAGE = ("type", "connection")
"""The keys of `storage` that are no options of a connector."""


class DynamicTables:
    """The creation of the nodes of dynamic tables, by the factory of components.

    `names` are those of all nodes of the pipeline.
    """

    def __init__(self, components: Components, names: Collection[str]) -> None:
        self._components = components
        self._names = {name.lower() for name in names}

    def nodes(self, node: Node) -> list[Node]:
        """Returns the nodes of a valid transform; none after an error, which is reported."""
        table = node.component
        assert isinstance(table, DynamicTable)
        values, fill = (self._free_name(node.name, end) for end in ("_values", "_fill"))
        config, storage = table.config, table.config.storage
        type_ = TYPE if storage is None else self._type((*node.route, "storage"), storage)
        if type_ is None:
            return []
        lookup = SourceSpec.model_validate({
            "type": type_, "schema": {config.column: config.column_type},
            "primary_key": [config.column], "lookup": {"cache": config.cache.model_dump()},
            **_options("source", type_, storage),
        })  # fmt: skip
        write = SinkSpec.model_validate({
            "type": type_, "from": values, "primary_key": [config.column],
            "on_error": node.spec.on_error, **_options("sink", type_, storage),
        })  # fmt: skip
        components = self._make(node, table, lookup, write, fill)
        if components is None:
            return []
        source, sink = components
        parts = [Node(node.name, "source", source, lookup, (), node.where)]
        if sink is not None:
            # The options of a storage may have secrets, and are those of the sink.
            query = DynamicTable(config.model_copy(update={"storage": None}), table.context)
            parts.append(replace(node, name=values, component=query))
            parts.append(Node(fill, "sink", sink, write, (values,), node.where))
        return [replace(part, dynamic_table=node.name) for part in parts]

    def _free_name(self, name: str, suffix: str) -> str:
        free, number = derived_name(name, suffix), 1
        while free.lower() in self._names:
            number += 1
            free = derived_name(name, f"{suffix}_{number}")
        return free

    def _make(
        self, node: Node, table: DynamicTable, lookup: SourceSpec, write: SinkSpec, fill: str
    ) -> tuple[Component[Any], Component[Any] | None] | None:
        """Returns the lookup table, and the sink of a table with a query; None after an error."""
        is_filled = table.config.sql is not None
        if table.config.storage is None:
            context = replace(table.context, state=self._components.state / "nodes" / node.name)
            return StateTable(context, table.values), StateTableSink(replace(context, node=fill))
        route, count = (*node.route, "storage"), len(self._components.errors)
        source = self._components.make(route, "source", node.name, lookup)
        if source is None or len(self._components.errors) > count:
            return None
        if not isinstance(source, LookupSource):
            self._report_type(route, lookup.type)
            return None
        sink = self._components.make(route, "sink", fill, write) if is_filled else None
        return None if len(self._components.errors) > count else (source, sink)

    def _type(self, route: Route, storage: Mapping[str, Any]) -> str | None:
        """Returns the type of a storage with known options. Returns None after an error."""
        add_error, type_ = self._components.add_error, storage.get("type")
        if not isinstance(type_, str):
            hint = f"Set type to one of {', '.join(storage_types())}."
            add_error(route, "the storage has no type", code="missing-option", hint=hint)
            return None
        if not _stores_values(type_):
            self._report_type(route, type_)
            return None
        known = [*_OF_STORAGE, *_fields("source", type_), *_fields("sink", type_)]
        unknown = [name for name in storage if name not in known]
        for name in unknown:
            message = f'the storage (type: {type_}) has no option "{name}"'
            nearest = did_you_mean(name, known)
            add_error((*route, name), message, code="unknown-option", hint=nearest, of_key=True)
        return None if unknown else type_

    def _report_type(self, route: Route, type_: str) -> None:
        known = storage_types()
        self._components.add_error(
            (*route, "type"), f'a dynamic table cannot be stored in "{type_}"', code="no-lookup",
            hint=did_you_mean(type_, known) or f"Use one of {', '.join(known)}.",
        )  # fmt: skip


def storage_types() -> list[str]:
    """Returns the types of databases that can have a dynamic table."""
    return [type_ for type_ in lookup_types() if _stores_values(type_)]


@cache
def _stores_values(type_: str) -> bool:
    """Returns whether rows of a type are looked up by key, and inserted or replaced by key."""
    if not all(type_ in registry.types(kind) for kind in ("source", "sink")):
        return False
    source, sink = registry.find("source", type_), registry.find("sink", type_)
    return (
        Capability.LOOKUP_BY_KEY in source.optional_capabilities
        and Capability.ROWS in source.capabilities
        and {Capability.ROWS, Capability.UPSERT} <= sink.capabilities
    )


def _fields(kind: Literal["source", "sink"], type_: str) -> list[str]:
    return list(fields_at(registry.find(kind, type_).config_type, ()))


def _options(
    kind: Literal["source", "sink"], type_: str, storage: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Returns the options of a storage that the source or the sink has."""
    known = _fields(kind, type_) if storage is not None else ()
    return {name: value for name, value in (storage or {}).items() if name in known}
