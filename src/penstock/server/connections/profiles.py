"""Connection profiles: their changes, and the pipelines and users that may use them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from penstock.core.errors import UserError
from penstock.runtime.state.directory import now
from penstock.server.connections.listings import listed_options
from penstock.server.connections.secret_options import (
    kept,
    require_known,
    separate,
    shown,
    with_secrets,
    without_marks,
)
from penstock.server.store.accounts import User
from penstock.server.store.connections import Connections, Permissions, StoredConnection
from penstock.spec.documents.profiles import VARIABLE

Facts = dict[str, Any]


class Profiles:
    """The connection profiles of a server. Answers never have a secret."""

    def __init__(self, connections: Connections, base: Path) -> None:
        self._connections, self._base = connections, base

    def list(self, user: User) -> list[Facts]:
        """Returns the profiles that a user may use, by name."""
        return [_facts(each) for each in self._connections.all() if _permits(each, user)]

    def show(self, name: str, user: User) -> Facts:
        """Returns a profile. Raises UserError for an unknown one, also one that is not permitted.

        Both have the same error.
        """
        return _facts(self._get(name, user))

    def create(
        self, name: str, type_: str, options: Mapping[str, Any], user: User,
        permissions: Permissions,
    ) -> Facts:  # fmt: skip
        """Creates a profile. Raises PlanError for an unknown type or option."""
        require_known(type_, options)
        plain, secrets = separate(type_, without_marks(options))
        profile = StoredConnection(name, type_, plain, secrets, permissions, user.name, now())
        self._connections.add(profile)
        return _facts(profile)

    def change(
        self, name: str, options: Mapping[str, Any], user: User, permissions: Permissions | None
    ) -> Facts:
        """Replaces the options of a profile, and its permissions unless they are None.

        Secrets that the options omit remain. Raises UserError if other options change and secrets
        remain: a user without the secrets could send them to another address.
        """
        profile = self._get(name, user)
        require_known(profile.type, options)
        plain, secrets = separate(profile.type, without_marks(options))
        remaining = kept(profile.secrets, options)
        if plain != profile.options and _added(remaining, secrets):
            raise UserError(
                "a change of the options requires the secrets again", code="secrets-required",
                hint="Enter all secrets of the connection.",
            )  # fmt: skip
        changed = replace(
            profile, options=plain, secrets=with_secrets(remaining, secrets), author=user.name,
            permissions=permissions or profile.permissions, time=now(),
        )  # fmt: skip
        self._connections.set(changed)
        return _facts(changed)

    def delete(self, name: str, user: User) -> None:
        """Deletes a profile. Pipelines that name it fail their next check."""
        if not user.may("admin"):  # who may delete one whose key is lost
            self._get(name, user)
        self._connections.remove(name)

    def rotate_keys(self) -> int:
        """Encrypts all secrets of the store with a new key. Returns their number."""
        return self._connections.rotate()

    def stamp(self) -> str:
        """Returns a text that changes with the profiles."""
        return self._connections.stamp()

    def environment(
        self, user: User | None, pipeline: str | None, names: Iterable[str] | None = None
    ) -> dict[str, str]:
        """Returns the variable with the profiles that a pipeline may use, in the texts of a user.

        None is the server for `user`, a pipeline without an ID, and all for `names`.
        """
        chosen = None if names is None else set(names)
        found = {
            each.name: _passed(each) if each.permissions.permit(user, pipeline) else None
            for each in self._connections.all()
            if chosen is None or each.name in chosen
        }
        return self._variable(found)

    def environment_of(self, name: str, user: User) -> tuple[dict[str, str], StoredConnection]:
        """Returns the variable with one profile, and the profile."""
        profile = self._get(name, user)
        return self._variable({name: _passed(profile)}), profile

    def environment_of_draft(self, name: str, type_: str, options: Mapping[str, Any]) -> Facts:
        """Returns the variable with a profile that is not stored."""
        require_known(type_, options)
        plain, secrets = separate(type_, without_marks(options))
        draft = StoredConnection(name, type_, plain, secrets, Permissions(), "", "")
        return self._variable({name: _passed(draft)})

    def _variable(self, profiles: Mapping[str, Facts | None]) -> dict[str, str]:
        if not profiles:
            return {}
        return {VARIABLE: json.dumps({"base": str(self._base), "profiles": profiles})}

    def _get(self, name: str, user: User) -> StoredConnection:
        profile = self._connections.get(name)
        if not _permits(profile, user):
            raise UserError(f'there is no connection "{name}"', code="no-connection")
        return profile


def permissions_of(
    users: Sequence[str] | None, pipelines: Sequence[str] | None, right: str
) -> Permissions:
    """Returns the permissions of a request."""
    return Permissions(
        None if users is None else tuple(users),
        None if pipelines is None else tuple(pipelines), right,
    )  # fmt: skip


def _permits(profile: StoredConnection, user: User) -> bool:
    return profile.permissions.permit_user(user)


def _passed(profile: StoredConnection) -> Facts:
    options = {"type": profile.type, **with_secrets(profile.options, profile.secrets)}
    return {"options": options, "secrets": profile.secrets}


def _facts(profile: StoredConnection) -> Facts:
    return {
        "name": profile.name, "type": profile.type,
        "options": shown(profile.options, profile.secrets),
        "permissions": asdict(profile.permissions), "author": profile.author, "time": profile.time,
        "lists": listed_options(profile.type),
    }  # fmt: skip


def _added(remaining: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Returns whether secrets remain that a request does not give again."""
    for key, value in remaining.items():
        known = given.get(key)
        if isinstance(value, Mapping):
            if _added(value, known if isinstance(known, Mapping) else {}):
                return True
        elif known is None:
            return True
    return False
