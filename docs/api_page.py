"""The page of the API of the server, from its description by OpenAPI."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from tables import table

from penstock.server.api.application import PREFIX, ROUTERS
from penstock.server.api.description import describe, rights_of

INTRODUCTION = """# The API of the server

The paths of [`penstock serve`](../howto/server.md). `/api/v1/openapi.json` describes them by
OpenAPI 3.1, for generators of clients. A request has the header `Authorization: Bearer TOKEN`, and
its body is JSON. An answer with the status 400 or above has `errors`: each has `code`, `message`,
`hint`, and the place in the text as `file`, `line`, `column` and `length`.
[Rights](../howto/server.md#users) are those of the user of the token. Unknown fields and parameters
are errors.

"""


def api() -> str:
    """Returns the page of all paths, by subject."""
    app = FastAPI(title="Penstock")
    for router in ROUTERS:
        app.include_router(router, prefix=PREFIX)
    found = describe(app, rights_of(ROUTERS, PREFIX))
    subjects: dict[str, list[str]] = {}
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            (subject,) = operation["tags"]
            text = _operation(path, method, operation, found["components"]["schemas"])
            subjects.setdefault(subject, []).append(text)
    sections = (f"## {name.capitalize()}\n\n{''.join(texts)}" for name, texts in subjects.items())
    return INTRODUCTION + "".join(sections)


def _operation(path: str, method: str, operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    right = operation.get("x-right")
    needs = f"Requires the right `{right}`." if right else "Requires no login."
    text = f"### {method.upper()} {path}\n\n{operation['description']}\n\n{needs}\n\n"
    body = _body(operation, schemas)
    if meaning := body.get("description"):
        text += f"Body: {meaning}\n\n"
    rows = [*_parameters(operation), *_fields(body)]
    return text + (table(("name", "in", "value", "meaning"), rows) if rows else "")


def _parameters(operation: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    for each in operation.get("parameters", ()):
        if each["in"] != "path":
            value = _value(each["schema"], required=each["required"])
            yield f"`{each['name']}`", each["in"], value, each.get("description", "")


def _body(operation: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of the body; an empty one without a body."""
    body = operation.get("requestBody")
    if body is None:
        return {}
    reference: str = body["content"]["application/json"]["schema"]["$ref"]
    found: dict[str, Any] = schemas[reference.rpartition("/")[2]]
    return found


def _fields(body: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    for name, schema in body.get("properties", {}).items():
        value = _value(schema, required=name in body.get("required", ()))
        yield f"`{name}`", "body", value, schema.get("description", "")


def _value(schema: dict[str, Any], *, required: bool) -> str:
    """Returns the type of a value, its default and whether it is required."""
    text = _type(schema)
    if required:
        return f"{text}, required"
    default = schema.get("default")
    return text if default in (None, "", [], {}) else f"{text}; by default `{default}`"


def _type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"] if each.get("type") != "null")
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]  # type: ignore[no-any-return]
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    return str(schema.get("type", "any"))
