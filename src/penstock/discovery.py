"""Discovery of the tables of a database, and a pipeline that reads them; components without one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from penstock.core.errors import PenstockError, PlanError, UserError, flatten_errors, raise_all
from penstock.core.secret import Secret
from penstock.core.text import did_you_mean
from penstock.plan.make import make_plan
from penstock.sdk import Component, registry
from penstock.sdk.database import TableName
from penstock.sdk.database.changes import ChangesConfig
from penstock.sdk.database.ledger import LEDGER
from penstock.sdk.database.listing import ListedSource, TableListing
from penstock.sdk.messages.listing import EXAMPLE, ListedTopics
from penstock.spec.documents.reading import complete, parsed
from penstock.spec.validate import validate
from penstock.spec.yaml.parse import parse_document
from penstock.spec.yaml.writer import to_text

_OF_NODES = frozenset({"changes", "lookup", "query", "static", "table", "type"})
"""Options that select a table, or another way to read it."""


@dataclass(frozen=True)
class DiscoveredTable:
    """A table of a database: its columns, its primary key and whether its changes can be read.

    `error` is the reason why the table cannot be read, and `changes_error` the reason why its
    changes cannot. `reads_changes` is false for a system whose changes no source reads.
    """

    name: str
    columns: pa.Schema | None
    primary_key: tuple[str, ...] = ()
    reads_changes: bool = False
    error: PenstockError | None = None
    changes_error: PenstockError | None = None

    @property
    def has_changes(self) -> bool:
        """Whether the changes of the table can be read."""
        return self.reads_changes and self.error is None and self.changes_error is None


@dataclass(frozen=True)
class Discovery:
    """Tables of a database, which a source of `type` with `options` reads.

    The options have variables in place of secrets; `variables` are their names. Sources of changes
    with the options `shared` have one connection.
    """

    type: str
    options: Mapping[str, Any]
    tables: Sequence[DiscoveredTable]
    variables: Sequence[str] = ()
    shared: Mapping[str, Any] = field(default_factory=dict)


def discover(type_: str, options: Mapping[str, Any], tables: Sequence[str] = ()) -> Discovery:
    """Returns the named tables of a database, by default all of them. Only reads.

    `options` are those of the source `type_` without a table. Expressions such as `${NAME}` are
    replaced. Raises UserError, Transient or Permanent.
    """
    source = _create_source(type_, options)
    with closing(source.connect()) as connection:
        known = [name for name in connection.tables() if name.name != LEDGER]
        names = [_find(table, known) for table in tables] if tables else known
        found = [_describe(source, connection, name) for name in names]
    variables: list[str] = []
    written = _without_secrets(options, source.config, type_, variables)
    config = source.config
    shared = config.shared_options(type_) if isinstance(config, ChangesConfig) else {}
    return Discovery(type_, written, found, variables, shared)


def _without_secrets(
    options: Mapping[str, Any], values: object, prefix: str, variables: list[str]
) -> dict[str, Any]:
    """Returns options with variables in place of secrets. Adds their names to `variables`."""
    result = dict(options)
    for key, option in options.items():
        value = values.get(key) if isinstance(values, Mapping) else getattr(values, key, None)
        if isinstance(option, Mapping):
            result[key] = _without_secrets(option, value, prefix, variables)
        elif isinstance(value, Secret) and "${" not in str(option):
            name = re.sub(r"\W", "_", f"{prefix}_{key}").upper()
            result[key] = f"${{{name}}}"
            variables.append(name)
    return result


def table_names(type_: str, options: Mapping[str, Any]) -> list[str]:
    """Returns the names of the tables of a database; see `discover`."""
    source = _create_source(type_, options)
    with closing(source.connect()) as connection:
        return sorted(str(name) for name in connection.tables() if name.name != LEDGER)


def listed_options(type_: str) -> tuple[str, ...]:
    """Returns the options of a source whose values `topic_names` lists. None may be listed."""
    component = registry.find("source", type_)
    return component.listed_options if issubclass(component, ListedTopics) else ()


def topic_names(
    type_: str, options: Mapping[str, Any], option: str | None = None
) -> tuple[str, list[str]]:
    """Returns an option, by default the first, and the names that exist for it. Only reads.

    Raises PlanError for a source that lists none, the errors of the options, Transient or
    Permanent.
    """
    able = [
        name for name, found in registry.importable("source") if issubclass(found, ListedTopics)
    ]
    component = registry.find("source", type_)
    if not issubclass(component, ListedTopics):
        raise PlanError(
            f'the source "{type_}" has no topics to discover', code="no-topics",
            hint=f"Discover one of {', '.join(able)}.",
        )  # fmt: skip
    first, *_ = listed = component.listed_options
    if option not in (None, *listed):
        raise PlanError(
            f'names for the option "{option}" of {type_} cannot be discovered', code="no-topics",
            hint=f"Discover {' or '.join(listed)}.",
        )  # fmt: skip
    source = make_component("source", type_, {first: EXAMPLE, **options})
    chosen = option or first
    return chosen, sorted({*component.topic_names(source.config, chosen)})


def source_text(discovery: Discovery, connection: str) -> str:
    """Returns the section `sources` of YAML that reads the tables over a connection."""
    return to_text({"sources": _sources(discovery, connection)})


def _sources(discovery: Discovery, connection: str) -> dict[str, Any]:
    """Returns sources of the tables by the names of their nodes."""
    tables = discovery.tables
    shared = discovery.shared if sum(table.has_changes for table in tables) > 1 else {}
    return {
        node: {
            "type": discovery.type, "connection": connection, "table": table.name,
            **({"changes": True, **shared} if table.has_changes else {}),
        }
        for node, table in zip(_node_names(tables), tables, strict=True)
    }  # fmt: skip


def pipeline_text(discovery: Discovery) -> str:
    """Returns a pipeline that reads the tables and prints their rows."""
    type_, options, tables = discovery.type, discovery.options, discovery.tables
    sources = _sources(discovery, type_)
    text = to_text(
        {
            "name": type_,
            "connections": {type_: dict(options)},
            "sources": sources,
            "sinks": {f"{node}_rows": {"type": "print", "from": node} for node in sources},
        }
    )
    comments = [line for table in tables for line in _comments(table)]
    comments += [f"Set the environment variable {name}." for name in discovery.variables]
    return "".join(f"# {line}\n" for line in comments) + text


def _create_source(type_: str, options: Mapping[str, Any]) -> Any:
    """Returns the source of a database, without a table. Raises the errors of its options."""
    able = [name for name, each in registry.importable("source") if issubclass(each, ListedSource)]
    component = registry.find("source", type_)
    if not issubclass(component, ListedSource):
        raise PlanError(
            f'the source "{type_}" has no tables to discover', code="no-tables",
            hint=f"Discover one of {', '.join(able)}.",
        )  # fmt: skip
    for name in _OF_NODES & options.keys():
        raise UserError(
            f"the option {name} has no meaning for the discovery of tables", code="usage",
            hint=f"Remove {name}, and set it in the pipeline.",
        )  # fmt: skip
    source = make_component("source", type_, {"table": component.example_table, **options})
    assert isinstance(source, ListedSource)
    return source


def make_component(
    kind: Literal["source", "sink"], type_: str, options: Mapping[str, Any]
) -> Component[Any]:
    """Returns a source or a sink without a pipeline, for tests of its connection.

    Raises the errors of the options, without locations.
    """
    node = {"type": type_, **options}
    other = f"other_than_{type_}"
    sources: dict[str, Any] = {type_: node}
    sinks: dict[str, Any] = {other: {"type": "blackhole", "from": type_}}
    if kind == "sink":
        sources = {other: {"type": "generate", "fields": {"id": "sequence"}}}
        sinks = {type_: {"from": other, **node}}
    text = to_text({"name": type_, "sources": sources, "sinks": sinks})
    document = parse_document(text, base=Path.cwd())
    pipeline, errors = validate(parsed(*complete([[document]], (), os.environ)))
    partial = make_plan(pipeline, errors) if pipeline is not None else None
    found = errors if partial is None else list(partial.errors)
    for error in found:
        for inner in flatten_errors(error):
            inner.where = None
    raise_all(found)
    assert partial is not None
    return partial.plan.nodes[type_].component


def _find(table: str, known: Sequence[TableName]) -> TableName:
    try:
        name = TableName.parse(table)
    except ValueError as error:
        raise UserError(f"{table}: {error}", code="usage") from None
    if name not in known:
        raise UserError(
            f'there is no table "{table}"', code="unknown-table",
            hint=did_you_mean(table, map(str, known)),
        )  # fmt: skip
    return name


def _describe(source: Any, connection: TableListing, name: TableName) -> DiscoveredTable:
    reads_changes = "changes" in type(source.config).model_fields
    try:
        columns, key = connection.columns(name), connection.primary_key(name)
    except PenstockError as error:
        return DiscoveredTable(str(name), None, (), reads_changes, error)
    finally:
        connection.rollback()
    changes_error = _changes_error(source, name) if reads_changes else None
    return DiscoveredTable(str(name), columns, key, reads_changes, None, changes_error)


def _changes_error(source: Any, name: TableName) -> PenstockError | None:
    """Returns the reason why the changes of a table cannot be read."""
    config = source.config.model_copy(update={"table": str(name), "changes": True})
    changes: Component[Any] = type(source).create(config, source.context)
    try:
        changes.check()
    except PenstockError as error:
        return error
    return None


def _node_names(tables: Sequence[DiscoveredTable]) -> Iterator[str]:
    """Yields the names of the nodes of tables, which are all different."""
    used: set[str] = set()
    for table in tables:
        base = re.sub(r"\W+", "_", table.name.lower(), flags=re.ASCII).strip("_") or "table"
        base = f"table_{base}" if base[0].isdigit() else base
        name, number = base, 1
        while name in used:
            number += 1
            name = f"{base}_{number}"
        used.add(name)
        yield name


def _comments(table: DiscoveredTable) -> Iterator[str]:
    """Yields the reasons why a table, or its changes, cannot be read."""
    error = table.error or table.changes_error
    if error is None:
        return
    subject = "" if table.error else "the changes cannot be read: "
    yield from f"{table.name}: {subject}{error.message}".splitlines()
    if error.hint:
        yield from f"  {error.hint}".splitlines()
