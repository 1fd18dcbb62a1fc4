"""Errors of requests that do not fit the models of the API: what was expected, and a fix.

Messages never have a value of the request, which may be a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fastapi import Request
from pydantic import BaseModel

from penstock.core.text import did_you_mean

CODE = "invalid-request"
NEEDS_OBJECT = "Send a JSON object, such as {}, with Content-Type: application/json."
_TYPES = {
    "string_type": "text", "string_unicode": "text of Unicode", "int_type": "a whole number",
    "int_parsing": "a whole number", "int_from_float": "a whole number", "float_type": "a number",
    "float_parsing": "a number", "bool_type": "true or false", "bool_parsing": "true or false",
    "list_type": "a list", "dict_type": "an object", "model_type": "an object",
    "model_attributes_type": "an object", "finite_number": "a finite number",
}  # fmt: skip
_LIMITS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "literal_error": lambda c: str(c["expected"]).replace("'", '"'),
    "enum": lambda c: str(c["expected"]).replace("'", '"'),
    "string_too_long": lambda c: f"at most {c['max_length']:,} characters",
    "string_too_short": lambda c: f"at least {c['min_length']:,} characters",
    "too_long": lambda c: f"at most {c['max_length']:,} entries",
    "too_short": lambda c: f"at least {c['min_length']:,} entries",
    "greater_than": lambda c: f"a number above {c['gt']:,}",
    "greater_than_equal": lambda c: f"at least {c['ge']:,}",
    "less_than": lambda c: f"a number below {c['lt']:,}",
    "less_than_equal": lambda c: f"at most {c['le']:,}",
}
_NAME_FORM = "letters, digits, ., - and _, a letter or a digit first"
_TIME_FORM = "a time as 2026-01-31T08:00:00Z"
_FORMS = {"since": _TIME_FORM, "until": _TIME_FORM}
"""The forms of other texts than names, by their field."""
_HINTS = {
    "string_unicode": "Send valid UTF-8, without surrogates.",
}


def invalid_parts(request: Request, errors: Any) -> Iterator[dict[str, str]]:
    """Yields the errors of a request in the shape of all errors."""
    for each in errors:
        message, hint = _describe(request, each)
        yield {"code": CODE, "message": message, **({"hint": hint} if hint else {})}


def unknown_parameter(request: Request) -> tuple[str, str] | None:
    """Returns a parameter of the query that the route does not have, with a hint."""
    if not request.url.query or not request.url.path.startswith("/api/"):
        return None
    known = set(_parameters(request.scope["route"].dependant))
    unknown = next((name for name in request.query_params if name not in known), None)
    if unknown is None:
        return None
    return unknown, did_you_mean(unknown, known) or "Remove the parameter."


def _parameters(dependant: Any) -> Iterator[str]:
    yield from (field.alias for field in dependant.query_params)
    for each in dependant.dependencies:
        yield from _parameters(each)


def _describe(request: Request, error: Mapping[str, Any]) -> tuple[str, str | None]:
    type_, place, context = error["type"], tuple(error["loc"]), error.get("ctx") or {}
    if type_ == "json_invalid":
        return f"the body is no valid JSON at character {place[-1]}: {context['error']}", None
    if place == ("body",):
        found = "the request has no body" if type_ == "missing" else "the body is no JSON object"
        return found, NEEDS_OBJECT
    name = ".".join(map(str, place[1:])) or str(place[0])
    if type_ == "missing":
        return f'"{name}" is missing', f'Add "{name}" to the {_part(place)}.'
    if type_ == "extra_forbidden":
        known = _fields(request, place)
        return f'the request has no field "{name[:200]}"', (
            did_you_mean(str(place[-1]), known) or "Remove the field."
        )
    if type_ == "string_pattern_mismatch":
        return f'"{name}": expected {_FORMS.get(name, _NAME_FORM)}', None
    if (expected := _TYPES.get(type_)) is None and type_ in _LIMITS:
        expected = _LIMITS[type_](context)
    message = error["msg"] if expected is None else f"expected {expected}"
    return f'"{name}": {message}', _HINTS.get(type_)


def _part(place: tuple[str | int, ...]) -> str:
    return {"body": "body", "query": "query of the URL", "header": "headers"}.get(
        str(place[0]), str(place[0])
    )


def _fields(request: Request, place: tuple[str | int, ...]) -> list[str]:
    """Returns the fields of the body; none for a part of it."""
    body = getattr(request.scope.get("route"), "body_field", None)
    model = getattr(getattr(body, "field_info", None), "annotation", None)
    if len(place) != 2 or not (isinstance(model, type) and issubclass(model, BaseModel)):
        return []
    return list(model.model_fields)
