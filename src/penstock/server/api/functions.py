"""Routes of functions: check, register, versions."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from penstock.server.api.context import TheAudit, TheFunctions
from penstock.server.api.idempotency import IdempotentRoute
from penstock.server.api.models import Body, Note, Text
from penstock.server.api.security import Editor, Viewer

router = APIRouter(tags=["functions"], prefix="/functions", route_class=IdempotentRoute)
FileName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]


class FunctionText(Body):
    """A Python file with functions for SQL."""

    name: FileName
    text: Text


class NewFunctions(FunctionText):
    """A Python file to register as a new version."""

    note: Note = ""


@router.get("")
def list_functions(user: Viewer, functions: TheFunctions) -> list[dict[str, Any]]:
    """Returns the last version of each file, with the signatures of its functions."""
    return [asdict(each) for each in functions.latest()]


@router.post("/check")
def check_functions(body: FunctionText, user: Editor, functions: TheFunctions) -> dict[str, Any]:
    """Checks a file, which is not run: its signatures and errors."""
    return functions.check(body.name, body.text)


@router.post("", status_code=201)
def register_functions(
    body: NewFunctions, user: Editor, functions: TheFunctions, audit: TheAudit
) -> dict[str, Any]:
    """Registers a valid file as a new version. Runs use it from their next start on."""
    version = functions.register(body.name, body.text, user.name, body.note)
    audit.record(user.name, "register functions", body.name, version=version.version)
    return asdict(version)


@router.get("/{name}/versions")
def list_function_versions(
    name: str, user: Viewer, functions: TheFunctions
) -> list[dict[str, Any]]:
    """Returns the versions of a file, last first."""
    return [asdict(each) for each in functions.versions(name)]


@router.delete("/{name}", status_code=204)
def delete_functions(name: str, user: Editor, functions: TheFunctions, audit: TheAudit) -> None:
    """Deletes a file with all versions."""
    functions.remove(name)
    audit.record(user.name, "delete functions", name)
