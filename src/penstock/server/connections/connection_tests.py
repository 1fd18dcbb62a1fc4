"""Tests and discovery of connections, in workers, with a time limit and guarded addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.core.errors import UserError
from penstock.server.connections.profiles import Profiles
from penstock.server.connections.secret_options import schemas
from penstock.server.settings import Settings
from penstock.server.store.accounts import User
from penstock.server.workers.pool import WorkerPool

TEST_SECONDS = 20.0
DISCOVERY_SECONDS = 60.0
DRAFT = "draft"
"""The name of a connection that is not stored."""


class ConnectionTests:
    """Tests of the connections of a server. Users without the right `admin` are guarded."""

    def __init__(self, settings: Settings, profiles: Profiles, workers: WorkerPool) -> None:
        self._settings, self._profiles, self._workers = settings, profiles, workers

    def test(
        self, name: str, options: Mapping[str, Any], kind: str | None, user: User
    ) -> dict[str, Any]:
        """Tests a stored connection, with further options of a node such as `topic`.

        Raises UserError if they replace an option of the connection: its secrets are for its
        address only.
        """
        variables, type_ = self._checked(name, options, user)
        return self._test(name, type_, options, kind, variables, user)

    def access(self, name: str, options: Mapping[str, Any], user: User) -> dict[str, Any]:
        """Returns the steps of a stored connection; the options are those of `test`."""
        variables, _ = self._checked(name, options, user)
        return self._call(
            "check_access", user, TEST_SECONDS, variables, connection=name, options=dict(options)
        )

    def sample(
        self, name: str, options: Mapping[str, Any], limit: int, user: User
    ) -> dict[str, Any]:
        """Returns messages of a topic and their columns; the options are those of `test`."""
        variables, _ = self._checked(name, options, user)
        return self._call(
            "sample_topic", user, TEST_SECONDS, variables, connection=name, options=dict(options),
            limit=limit,
        )  # fmt: skip

    def _checked(
        self, name: str, options: Mapping[str, Any], user: User
    ) -> tuple[Mapping[str, str], str]:
        """Returns the variables and the type of a connection, whose options a test keeps."""
        variables, profile = self._profiles.environment_of(name, user)
        known = {*profile.options, *profile.secrets, "type", "connection"}
        for option in options:
            if option in known:
                raise UserError(
                    f'a test cannot replace the option "{option}" of the connection',
                    code="fixed-option", hint="Change the connection first.",
                )  # fmt: skip
        return variables, profile.type

    def test_draft(
        self, type_: str, connection: Mapping[str, Any], options: Mapping[str, Any],
        kind: str | None, user: User,
    ) -> dict[str, Any]:  # fmt: skip
        """Tests a connection that is not stored."""
        variables = self._profiles.environment_of_draft(DRAFT, type_, connection)
        return self._test(DRAFT, type_, options, kind, variables, user)

    def tables(self, name: str, user: User) -> list[str]:
        """Returns the names of the tables of a connection."""
        found = self._discover("list_tables", name, user)
        tables: list[str] = found["tables"]
        return tables

    def topics(self, name: str, user: User, option: str | None) -> tuple[str, list[str]]:
        """Returns an option of sources, and the names that exist for it over a connection."""
        found = self._discover("list_topics", name, user, option=option)
        return found["option"], found["topics"]

    def describe(self, name: str, tables: Sequence[str], user: User) -> dict[str, Any]:
        """Returns the columns of tables, and the sources that read them, as YAML."""
        return self._discover("describe_tables", name, user, tables=list(tables))

    def _test(
        self, name: str, type_: str, options: Mapping[str, Any], kind: str | None,
        variables: Mapping[str, str], user: User,
    ) -> dict[str, Any]:  # fmt: skip
        kinds = schemas(type_)
        return self._call(
            "test_connection", user, TEST_SECONDS, variables, connection=name,
            kind=kind if kind in kinds else next(iter(kinds)), options=dict(options),
        )  # fmt: skip

    def _discover(self, operation: str, name: str, user: User, **arguments: Any) -> dict[str, Any]:
        variables, _ = self._profiles.environment_of(name, user)
        return self._call(
            operation, user, DISCOVERY_SECONDS, variables, connection=name, **arguments
        )

    def _call(
        self, operation: str, user: User, seconds: float, variables: Mapping[str, str],
        **arguments: Any,
    ) -> dict[str, Any]:  # fmt: skip
        allowed = None if user.may("admin") else list(self._settings.networks)
        place = self._settings.directory / "connection.yaml"
        return self._workers.call(
            operation, place, timeout=seconds, variables=variables, allowed=allowed, **arguments
        )
