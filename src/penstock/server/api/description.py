"""The description of the API by OpenAPI 3.1: its paths, the right of each, and its errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from penstock.server.api.security import right_of

Facts = dict[str, Any]
Rights = Mapping[tuple[str, str], str]
"""The right that each path and method requires."""
_TEXT = {"type": ["string", "null"]}
_NUMBER = {"type": ["integer", "null"]}
ERRORS: Facts = {
    "title": "Errors",
    "description": "The answer of a request that fails.",
    "type": "object",
    "required": ["errors"],
    "properties": {
        "errors": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {
                    "code": {"type": "string"}, "message": {"type": "string"}, "hint": _TEXT,
                    "detail": _TEXT, "file": _TEXT, "line": _NUMBER, "column": _NUMBER,
                    "length": _NUMBER,
                },
            },
        },
        "changes": {"type": "array", "items": {"type": "object"}},
    },
}  # fmt: skip
_REFERENCE = {"$ref": "#/components/schemas/Errors"}
_FAILED = {"description": "An error", "content": {"application/json": {"schema": _REFERENCE}}}
_OF_FRAMEWORK = ("HTTPValidationError", "ValidationError")


def rights_of(routers: Iterable[APIRouter], prefix: str) -> Rights:
    """Returns the rights that the routes of routers require."""
    return {
        (f"{prefix}{route.path}", method.lower()): right
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute) and (right := right_of(route)) is not None
        for method in route.methods or ()
    }


def describe(app: FastAPI, rights: Rights) -> Facts:
    """Returns the description of an application."""
    found: Facts = get_openapi(
        title=app.title, version=app.version, openapi_version="3.1.0", routes=app.routes
    )
    components = found.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in _OF_FRAMEWORK:
        schemas.pop(name, None)
    schemas["Errors"] = ERRORS
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = _FAILED
            if (right := rights.get((path, method))) is not None:
                operation["security"] = [{"token": []}]
                operation["x-right"] = right
    return found
