"""Routes of connections: change, test, and discover their tables."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from penstock.core.errors import UserError
from penstock.server.api.context import TheAudit, TheConnectionTests, TheProfiles
from penstock.server.api.idempotency import IdempotentRoute
from penstock.server.api.models import Body, Name
from penstock.server.api.security import Admin, Editor
from penstock.server.connections.profiles import permissions_of
from penstock.server.connections.secret_options import schemas
from penstock.server.store.accounts import User
from penstock.server.store.connections import Permissions

router = APIRouter(tags=["connections"], prefix="/connections", route_class=IdempotentRoute)
Options = Annotated[dict[str, Any], Field(max_length=200)]
Names = Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=1000)]
Kind = Literal["source", "sink"]


SearchText = Annotated[str | None, Query(max_length=200)]
After = Annotated[str | None, Query(max_length=300)]
OptionName = Annotated[str | None, Query(max_length=64)]
Limit = Annotated[int, Query(ge=1, le=1000)]


class AllowedUse(Body):
    """The use of a connection. `pipelines` are IDs; null permits all."""

    users: Names | None = None
    pipelines: Names | None = None
    right: Literal["edit", "admin"] = "edit"

    def permissions(self) -> Permissions:
        return permissions_of(self.users, self.pipelines, self.right)


class NewConnection(Body):
    """A connection. Permissions require the right admin; by default all editors may use it."""

    name: Name
    type: Annotated[str, Field(max_length=64)]
    options: Options
    permissions: AllowedUse | None = None


class ChangedConnection(Body):
    """Options in place of all earlier ones. Secrets that they omit remain; null removes one."""

    options: Options
    permissions: AllowedUse | None = None


class Test(Body):
    """Options of a node, such as a topic or a table, and the kind of the node."""

    options: Options = {}
    kind: Kind | None = None


class AccessBody(Body):
    """Options of a node, such as a topic or a table."""

    options: Options = {}


class DraftTest(Test):
    """A connection that is not stored."""

    type: Annotated[str, Field(max_length=64)]
    connection: Options


class Tables(Body):
    tables: Annotated[Names, Field(min_length=1, max_length=100)]


@router.get("")
def list_connections(user: Editor, profiles: TheProfiles) -> list[dict[str, Any]]:
    """Returns the connections that the user may use, without their secrets."""
    return profiles.list(user)


@router.post("", status_code=201)
def create_connection(
    body: NewConnection, user: Editor, profiles: TheProfiles, audit: TheAudit
) -> dict[str, Any]:
    """Creates a connection. Its secrets are never returned."""
    permissions = _permissions(body.permissions, user) or Permissions()
    created = profiles.create(body.name, body.type, body.options, user, permissions)
    audit.record(user.name, "create connection", body.name, type=body.type)
    return created


@router.post("/test")
def test_draft(
    body: DraftTest, user: Editor, tests: TheConnectionTests, audit: TheAudit
) -> dict[str, Any]:
    """Tests a connection that is not stored. Consumes and writes nothing."""
    audit.record(user.name, "test connection", "", type=body.type)
    return tests.test_draft(body.type, body.connection, body.options, body.kind, user)


@router.get("/types/{name}")
def show_type(name: str, user: Editor) -> dict[str, Any]:
    """Returns the JSON Schemas of the options of a connector, as source and as sink."""
    return {str(kind): schema for kind, schema in schemas(name).items()}


@router.post("/keys/rotate")
def rotate_keys(user: Admin, profiles: TheProfiles, audit: TheAudit) -> dict[str, int]:
    """Encrypts all secrets with a new key, and removes the earlier keys of the key file."""
    count = profiles.rotate_keys()
    audit.record(user.name, "rotate keys", secrets=count)
    return {"secrets": count}


@router.get("/{name}")
def show_connection(name: str, user: Editor, profiles: TheProfiles) -> dict[str, Any]:
    """Returns a connection. A secret is shown as `{"set": true}`."""
    return profiles.show(name, user)


@router.put("/{name}")
def change_connection(
    name: str, body: ChangedConnection, user: Editor, profiles: TheProfiles, audit: TheAudit
) -> dict[str, Any]:
    """Changes a connection. Pipelines use the change from their next start on."""
    changed = profiles.change(name, body.options, user, _permissions(body.permissions, user))
    audit.record(user.name, "change connection", name)
    return changed


@router.delete("/{name}", status_code=204)
def delete_connection(name: str, user: Editor, profiles: TheProfiles, audit: TheAudit) -> None:
    """Deletes a connection."""
    profiles.delete(name, user)
    audit.record(user.name, "delete connection", name)


@router.post("/{name}/test")
def test_connection(
    name: str, body: Test, user: Editor, tests: TheConnectionTests, audit: TheAudit
) -> dict[str, Any]:
    """Tests a connection. Consumes and writes nothing."""
    audit.record(user.name, "test connection", name)
    return tests.test(name, body.options, body.kind, user)


@router.post("/{name}/access")
def check_access(
    name: str, body: AccessBody, user: Editor, tests: TheConnectionTests, audit: TheAudit
) -> dict[str, Any]:
    """Returns the steps reach, log in, read, write and create, each with its errors and remedies.

    Consumes, writes and creates nothing.
    """
    audit.record(user.name, "check access", name)
    return tests.access(name, body.options, user)


@router.get("/{name}/tables")
def list_tables(
    name: str, user: Editor, tests: TheConnectionTests, audit: TheAudit, text: SearchText = None,
    after: After = None, limit: Limit = 100,
) -> dict[str, Any]:  # fmt: skip
    """Returns names of tables that contain a text, after a name, in order."""
    audit.record(user.name, "list tables", name)
    found = _matching(tests.tables(name, user), text, after)
    return {"tables": found[:limit], "more": len(found) > limit}


@router.get("/{name}/topics")
def list_topics(
    name: str, user: Editor, tests: TheConnectionTests, audit: TheAudit, option: OptionName = None,
    text: SearchText = None, after: After = None, limit: Limit = 100,
) -> dict[str, Any]:  # fmt: skip
    """Returns names that exist for an option of sources and contain a text, after a name, in order.

    The option is by default the first of the connector, such as `topic`.
    """
    audit.record(user.name, "list topics", name)
    chosen, names = tests.topics(name, user, option)
    found = _matching(names, text, after)
    return {"option": chosen, "topics": found[:limit], "more": len(found) > limit}


@router.post("/{name}/tables")
def describe_tables(
    name: str, body: Tables, user: Editor, tests: TheConnectionTests, audit: TheAudit
) -> dict[str, Any]:
    """Returns the columns of tables, and the sources that read them, as YAML."""
    audit.record(user.name, "describe tables", name, tables=len(body.tables))
    return tests.describe(name, body.tables, user)


def _matching(names: list[str], text: str | None, after: str | None) -> list[str]:
    return [
        name
        for name in names
        if (after is None or name > after) and (text or "").lower() in name.lower()
    ]


def _permissions(body: AllowedUse | None, user: User) -> Permissions | None:
    """Returns the permissions of a request. Raises UserError without the right admin."""
    if body is None:
        return None
    if not user.may("admin"):
        raise UserError(
            "the permissions of a connection require the right admin", code="forbidden",
            hint="Leave out permissions, or ask a user with the right admin.",
        )  # fmt: skip
    return body.permissions()
