"""A sample of the messages of a topic, and the columns that a source without a schema has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from penstock import discovery
from penstock.core.error_report import to_dicts
from penstock.core.errors import PenstockError, PlanError
from penstock.plan.explain import Column
from penstock.sdk import Source, registry
from penstock.sdk.columns.type_names import sql_name
from penstock.sdk.messages.listing import ListedTopics

MAX_TEXT = 4000
"""The maximum number of characters of a message."""
MAX_COLUMN_TEXT = 100_000
"""The maximum number of characters of the names and types of columns."""


def sample_messages(type_: str, options: Mapping[str, Any], limit: int) -> dict[str, Any]:
    """Returns the first messages of a topic, and the columns that are inferred from them.

    Reads them as the inference of a schema does: nothing is acknowledged or committed. An error of
    the inference is one of the answer. Raises PlanError for a source without topics, the errors of
    the options, Transient or Permanent.
    """
    if not issubclass(registry.find("source", type_), ListedTopics):
        raise PlanError(
            f'the source "{type_}" has no topics to sample', code="no-topics",
            hint="Preview a pipeline that reads it.",
        )  # fmt: skip
    source = discovery.make_component("source", type_, options)
    assert isinstance(source, Source)
    payloads = source.sample(limit).to_pylist()[:limit]
    columns: pa.Schema | None = source.columns
    errors: list[dict[str, Any]] = []
    if columns is None and source.format is not None:
        try:
            columns = source.format.infer_schema(
                source.format.records(pa.array(payloads, pa.binary())).texts
            )
        except PenstockError as error:
            errors = to_dicts(error)
    found, more = _columns(columns or ())
    return {
        "messages": [_message(each) for each in payloads], "columns": found,
        "more_columns": more, "errors": errors,
    }  # fmt: skip


def _message(payload: bytes | None) -> dict[str, Any]:
    """Returns the text of a message, its size in bytes, and whether the text is cut."""
    if payload is None:
        return {"text": None, "bytes": None, "cut": False}
    text = payload[: 4 * MAX_TEXT].decode(errors="replace")
    cut = len(payload) > 4 * MAX_TEXT or len(text) > MAX_TEXT
    return {"text": text[:MAX_TEXT], "bytes": len(payload), "cut": cut}


def _columns(fields: Sequence[pa.Field] | pa.Schema) -> tuple[list[dict[str, str]], bool]:
    """Returns columns up to the maximum of their text, and whether there are more."""
    columns: list[dict[str, str]] = []
    length = 0
    for each in fields:
        column = Column(each.name, sql_name(each.type))
        length += len(column.name) + len(column.type)
        if length > MAX_COLUMN_TEXT:
            return columns, True
        columns.append(asdict(column))
    return columns, False
