"""Validation of data by pydantic models, with errors in the terms of a pipeline file."""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from penstock.core.errors import SpecError
from penstock.spec.findings import find_errors
from penstock.spec.source_map import Route, SourceMap
from penstock.spec.validation_errors import ErrorFormatter

M = TypeVar("M", bound=BaseModel)


def validate_model(
    model: type[M],
    data: object,
    source_map: SourceMap,
    prefix: Route = (),
    subject: str | None = None,
    known: Collection[str] = (),
) -> tuple[M | None, list[SpecError]]:
    """Returns `data` as a `model`, or the errors of validation.

    `data` is at `prefix` of the source map. `known` has further valid names at `prefix`, such as
    the options of every node, for suggestions. `subject` is the subject of messages; it defaults
    to the node at `prefix`. A substituted number is valid where text is expected.
    """
    try:
        return model.model_validate(data), []
    except ValidationError as error:
        converted = _as_text(error, data, source_map, prefix)
        failure = error
    if converted is not None:
        try:
            return model.model_validate(converted), []
        except ValidationError as error:
            failure = error
    return None, format_errors(failure, source_map, prefix, model, subject, known)


def format_errors(
    error: ValidationError,
    source_map: SourceMap,
    prefix: Route,
    model: type[BaseModel],
    subject: str | None = None,
    known: Collection[str] = (),
) -> list[SpecError]:
    """Returns the errors of pydantic in data at `prefix`; see `validate_model`."""
    details: list[Any] = error.errors(include_url=False)
    formatter = ErrorFormatter(source_map, prefix, model, known, subject)
    findings = formatter.merge_misnamed(find_errors(details, source_map, prefix, model))
    errors = [formatter.format(finding) for finding in findings]
    unique = {(error.where, error.message): error for error in errors if error is not None}
    return list(unique.values())


def _as_text(
    error: ValidationError, data: object, source_map: SourceMap, prefix: Route
) -> object | None:
    """Returns `data` with substituted numbers as text where text is expected, or None."""
    converted = None
    for detail in error.errors(include_url=False):
        value = source_map.find((*prefix, *detail["loc"]))
        if detail["type"] != "string_type" or value is None:
            continue
        if value.is_scalar and value.substitutions:
            converted = converted if converted is not None else copy.deepcopy(data)
            _set_value(converted, detail["loc"], value.text)
    return converted


def _set_value(data: Any, loc: Route, value: str) -> None:
    for step in loc[:-1]:
        data = data[step]
    data[loc[-1]] = value
