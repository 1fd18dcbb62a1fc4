"""The admin API of a Pulsar cluster: the names of topics."""

from __future__ import annotations

import base64
import json
import re
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlsplit

from penstock.connectors.pulsar.config import ConnectionConfig, PulsarAdmin
from penstock.core.errors import Permanent, PlanError, Transient
from penstock.core.secret import revealed
from penstock.sdk.network.tls import Tls

_PARTITION = re.compile(r"-partition-\d+$")
_INTERNAL = "__"


def list_topics(config: ConnectionConfig) -> list[str]:
    """Returns the full names of the persistent topics of the namespaces of `admin`.

    A topic with partitions has one name. Raises PlanError without an admin API, Transient or
    Permanent.
    """
    admin = _admin(config)
    found: set[str] = set()
    for namespace in admin.namespaces or _namespaces(config, admin):
        path = f"persistent/{_path(namespace)}"
        partitioned = _get(config, admin, f"{path}/partitioned")
        found |= {_PARTITION.sub("", name) for name in _get(config, admin, path)} | {*partitioned}
    return sorted(name for name in found if not name.rpartition("/")[2].startswith(_INTERNAL))


def _admin(config: ConnectionConfig) -> PulsarAdmin:
    if config.admin is None:
        raise PlanError(
            "topics of Pulsar are listed by the admin API, and the option admin is not set",
            code="no-topics", hint="Set admin: {url: http://HOST:8080}.",
        )  # fmt: skip
    if config.auth is not None and config.auth.oauth2 is not None:
        raise PlanError(
            "topics of Pulsar are listed with a token or a user name, not with OAuth 2.0",
            code="no-topics", hint="Write the names of the topics, or set auth.token.",
        )  # fmt: skip
    return config.admin


def _namespaces(config: ConnectionConfig, admin: PulsarAdmin) -> list[str]:
    tenants = _get(config, admin, "tenants")
    return [
        namespace
        for tenant in tenants
        for namespace in _get(config, admin, f"namespaces/{_path(tenant)}")
        if namespace != "pulsar/system"
    ]


def _get(config: ConnectionConfig, admin: PulsarAdmin, path: str) -> list[str]:
    """Returns a list of names. Redirections are errors: the credentials are for one address."""
    parts = urlsplit(admin.url)
    address = f"{parts.path.rstrip('/')}/admin/v2/{path}"
    try:
        with closing(_connection(config, admin)) as connection:
            connection.request("GET", address, headers=_headers(config))
            response = connection.getresponse()
            content = response.read()
    except (OSError, HTTPException) as error:
        raise Transient(
            f"could not reach the admin API {admin.url}: {error or 'timeout'}", code="unreachable",
            hint="Check admin.url, and that the broker is running.",
        ) from None  # fmt: skip
    if response.status != 200:
        raise _rejected(admin, path, response.status)
    try:
        names: Any = json.loads(content)
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _rejected(admin, path, "an answer that is no list of names")
    return names


def _connection(config: ConnectionConfig, admin: PulsarAdmin) -> HTTPConnection:
    parts = urlsplit(admin.url)
    host = parts.hostname or ""
    if parts.scheme == "http":
        return HTTPConnection(host, parts.port, timeout=config.timeout)
    tls = config.tls if isinstance(config.tls, Tls) else Tls()
    return HTTPSConnection(host, parts.port, timeout=config.timeout, context=tls.context())


def _headers(config: ConnectionConfig) -> dict[str, str]:
    auth = config.auth
    if auth is None:
        return {}
    if auth.token is not None:
        return {"Authorization": f"Bearer {auth.token.reveal()}"}
    login = f"{auth.username}:{revealed(auth.password)}".encode()
    return {"Authorization": f"Basic {base64.b64encode(login).decode()}"}


def _rejected(admin: PulsarAdmin, path: str, reason: object) -> Permanent | Transient:
    message = f"cannot list {path} by the admin API {admin.url}: {reason}"
    if reason in (401, 403):
        return Permanent(
            message, code="authentication",
            hint="Check auth. Set admin.namespaces if the role is no superuser.",
        )  # fmt: skip
    if isinstance(reason, int) and reason >= 500:
        return Transient(message, hint="Check the log of the broker.")
    return Permanent(message, hint="Check admin.url and admin.namespaces.")


def _path(name: str) -> str:
    return quote(name, safe="/")
