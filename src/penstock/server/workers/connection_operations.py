"""Operations of a worker on connections of the server: tests and discovery.

The connection is a profile of the environment, which `perform` sets.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from penstock import discovery
from penstock.core.error_report import to_dicts
from penstock.core.errors import PenstockError, PlanError
from penstock.discovery import DiscoveredTable
from penstock.plan.explain import Column
from penstock.sdk import registry
from penstock.sdk.columns.type_names import sql_name
from penstock.sdk.database.listing import ListedSource
from penstock.server.connections.guard import Guard
from penstock.server.workers.access import Access
from penstock.server.workers.message_samples import sample_messages
from penstock.spec.documents.profiles import VARIABLE

Facts = dict[str, Any]
Allowed = Sequence[str] | None
"""The networks that tests may reach in addition; None permits all addresses."""


def test_connection(
    file: Path, connection: str, kind: Literal["source", "sink"], options: Mapping[str, Any],
    allowed: Allowed = None,
) -> Facts:  # fmt: skip
    """Connects as a source or a sink does before a run. Consumes and writes nothing."""
    type_ = _options_of(connection)["type"]
    component = registry.find(kind, type_)
    given: Facts = {**options, "connection": connection}
    if issubclass(component, ListedSource) and not {"table", "query"} & options.keys():
        return {"tables": _count_tables(type_, given, allowed)}
    with _guarded({**_options_of(connection), **options}, allowed):
        found = discovery.make_component(kind, type_, given)
        found.check()
    return {"tables": None}


def check_access(
    file: Path, connection: str, options: Mapping[str, Any], allowed: Allowed = None
) -> Facts:
    """Returns the steps of a connection; see `access`. Consumes, writes and creates nothing."""
    own = _options_of(connection)
    with _guarded({**own, **options}, allowed):
        return {"steps": Access(own["type"], {**options, "connection": connection}).check()}


def sample_topic(
    file: Path, connection: str, options: Mapping[str, Any], limit: int, allowed: Allowed = None
) -> Facts:
    """Returns messages of a topic and their columns; see `sample_messages`. Consumes nothing."""
    own = _options_of(connection)
    with _guarded({**own, **options}, allowed):
        return sample_messages(own["type"], {**options, "connection": connection}, limit)


def _count_tables(type_: str, options: Mapping[str, Any], allowed: Allowed) -> int:
    with _guarded(_options_of(options["connection"]), allowed):
        return len(discovery.table_names(type_, options))


def list_tables(file: Path, connection: str, allowed: Allowed = None) -> Facts:
    """Returns the names of the tables of a connection."""
    options = _options_of(connection)
    with _guarded(options, allowed):
        return {"tables": discovery.table_names(options["type"], {"connection": connection})}


def list_topics(
    file: Path, connection: str, option: str | None = None, allowed: Allowed = None
) -> Facts:
    """Returns an option of sources, and the names that exist for it over a connection."""
    options = _options_of(connection)
    with _guarded(options, allowed):
        found = discovery.topic_names(options["type"], {"connection": connection}, option)
    return {"option": found[0], "topics": found[1]}


def describe_tables(
    file: Path, connection: str, tables: Sequence[str], allowed: Allowed = None
) -> Facts:
    """Returns the columns and keys of tables, and the sources that read them, as YAML."""
    options = _options_of(connection)
    with _guarded(options, allowed):
        found = discovery.discover(options["type"], {"connection": connection}, tables)
    return {
        "tables": [_table(each) for each in found.tables],
        "text": discovery.source_text(found, connection),
    }


def _table(table: DiscoveredTable) -> Facts:
    columns = table.columns and [
        asdict(Column(each.name, sql_name(each.type))) for each in table.columns
    ]
    error = table.error or table.changes_error
    return {
        "name": table.name, "columns": columns, "primary_key": list(table.primary_key),
        "changes": table.has_changes, "errors": [] if error is None else to_dicts(error),
    }  # fmt: skip


def _options_of(connection: str) -> Facts:
    profiles: Facts = json.loads(os.environ[VARIABLE])["profiles"]
    options: Facts = profiles[connection]["options"]
    return options


@contextmanager
def _guarded(options: Mapping[str, Any], allowed: Allowed) -> Iterator[None]:
    """Guards addresses. Errors have no detail, which may have answers of other servers."""
    if allowed is None:
        yield
        return
    with Guard(allowed).active(options):
        try:
            yield
        except PlanError:
            raise
        except PenstockError as error:
            error.detail = None
            raise
