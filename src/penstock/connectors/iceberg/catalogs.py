"""Catalogs whose requests have timeouts."""

from __future__ import annotations

from typing import Any

from penstock.sdk.database.postgres_client import connect_postgres

CONNECT_SECONDS, RESPONSE_SECONDS = 10, 60
SILENCE = 10
"""The seconds after a timeout of PostgreSQL at which the client closes the connection."""


def rest_catalog(name: str, **properties: Any) -> Any:
    """Returns a REST catalog. Reaches the server."""
    from pyiceberg.catalog.rest import RestCatalog
    from requests.adapters import HTTPAdapter

    class Adapter(HTTPAdapter):
        """A transport that waits for a limited time.

        The options of TLS precede the environment variables of `requests`.
        """

        def __init__(self, session: Any) -> None:
            super().__init__()
            self._session = session

        def send(self, *args: Any, **kwargs: Any) -> Any:
            kwargs["timeout"] = kwargs.get("timeout") or (CONNECT_SECONDS, RESPONSE_SECONDS)
            if self._session.verify is not True:
                kwargs["verify"] = self._session.verify
            return super().send(*args, **kwargs)

    class Catalog(RestCatalog):
        """A REST catalog. Its session has the adapter before its first request, for a token."""

        def _create_legacy_oauth2_auth_manager(self, session: Any) -> Any:
            for scheme in ("http://", "https://"):
                session.mount(scheme, Adapter(session))
            return super()._create_legacy_oauth2_auth_manager(session)

    return Catalog(name, **properties)


def sql_catalog(name: str, **properties: Any) -> Any:
    """Returns a catalog in a file of SQLite or in PostgreSQL. Reaches the server."""
    from pyiceberg.catalog.sql import SqlCatalog
    from sqlalchemy import event

    def connect(dialect: Any, record: Any, arguments: Any, options: Any) -> Any:
        return connect_postgres(RESPONSE_SECONDS + SILENCE, *arguments, **options)

    class Catalog(SqlCatalog):
        """A catalog. Its engine has the function that connects before its first query."""

        def _init_catalog(self) -> None:
            if self.engine.dialect.name == "postgresql":
                event.listen(self.engine, "do_connect", connect)
            super()._init_catalog()

    return Catalog(name, **properties)
