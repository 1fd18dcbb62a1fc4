"""Routes of installed components: what pipelines can be made of."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from typing import Any

from fastapi import APIRouter, Request

from penstock.core.version import __version__
from penstock.server.api.description import describe
from penstock.server.api.security import Viewer

router = APIRouter(tags=["components"])


@router.get("/components")
def list_components(user: Viewer) -> dict[str, list[dict[str, Any]]]:
    """Returns sources, transforms, sinks and formats with their options."""
    return _components()


@router.get("/schema")
def show_schema(user: Viewer) -> dict[str, Any]:
    """Returns the JSON Schema of pipeline files."""
    return _schema()


@router.get("/openapi.json", include_in_schema=False)
def describe_api(request: Request, user: Viewer) -> dict[str, Any]:
    """Returns the description of the API by OpenAPI 3.1."""
    return describe(request.app, request.app.state.rights)


@router.get("/version")
def show_version(user: Viewer) -> dict[str, str]:
    """Returns the version of the server."""
    return {"version": __version__}


@cache
def _components() -> dict[str, list[dict[str, Any]]]:
    from penstock.sdk.describe import describe_all

    return {f"{kind}s": [asdict(each) for each in types] for kind, types in describe_all().items()}


@cache
def _schema() -> dict[str, Any]:
    from penstock.sdk import registry
    from penstock.spec.schema import json_schema

    return json_schema(registry.schemas())
