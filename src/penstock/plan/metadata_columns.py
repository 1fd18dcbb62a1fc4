"""Metadata columns of sources: their names, and checks of the options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.core.errors import OptionError, PenstockError, raise_all
from penstock.core.text import did_you_mean
from penstock.sdk import Source
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.columns.type_names import sql_name
from penstock.spec.node_models import SourceSpec


def metadata_columns(spec: SourceSpec) -> dict[str, str]:
    """Returns the metadata columns of a source as a map of column to name."""
    names = spec.metadata
    return names if isinstance(names, dict) else {name: name for name in names}


def check_metadata(source: Source[Any], spec: SourceSpec) -> None:
    """Checks that a source has the metadata, with the declared types.

    Raises OptionError, or ValidationErrors with all errors.
    """
    raise_all([*_unknown(source, spec), *_of_other_types(source, spec)])


def _unknown(source: Source[Any], spec: SourceSpec) -> Iterator[OptionError]:
    names, known = spec.metadata, source.metadata_schema().names
    for column, name in metadata_columns(spec).items():
        if name not in known:
            key: str | int = column if isinstance(names, dict) else names.index(name)
            yield OptionError.of(
                "metadata", key, message=f'unknown metadata "{name}"', code="unknown-metadata",
                hint=did_you_mean(name, known) if known else "Remove the option metadata.",
            )  # fmt: skip


def _of_other_types(source: Source[Any], spec: SourceSpec) -> Iterator[PenstockError]:
    schema, columns = source.metadata_schema(), metadata_columns(spec)
    for column, type_ in spec.metadata_types.items():
        try:
            expected = sql_name(arrow_schema({column: type_}).field(0).type)
        except PenstockError as error:
            yield OptionError.inside("metadata_types", error)
            continue
        if columns.get(column) not in schema.names:
            continue
        found = sql_name(schema.field(columns[column]).type)
        if expected != found:
            yield OptionError.of(
                "metadata_types", column,
                message=f'metadata "{columns[column]}" is {found}, not {expected}',
                code="wrong-type", hint=f'Declare the column "{column}" as {found}.',
            )  # fmt: skip
