"""REST catalogs whose requests have timeouts."""

from __future__ import annotations

from typing import Any


def rest_catalog(name: str, **properties: Any) -> Any:
    """Returns a REST catalog. Reaches the server."""
    from pyiceberg.catalog.rest import RestCatalog
    from requests.adapters import HTTPAdapter

    from penstock.connectors.iceberg.client import CONNECT_SECONDS, RESPONSE_SECONDS

    class Adapter(HTTPAdapter):
        """A transport that waits for a limited time."""

        def send(self, *args: Any, **kwargs: Any) -> Any:
            kwargs["timeout"] = kwargs.get("timeout") or (CONNECT_SECONDS, RESPONSE_SECONDS)
            return super().send(*args, **kwargs)

    class Catalog(RestCatalog):
        """A REST catalog. Its session has the adapter before its first request, for a token."""

        def _create_legacy_oauth2_auth_manager(self, session: Any) -> Any:
            for scheme in ("http://", "https://"):
                session.mount(scheme, Adapter())
            return super()._create_legacy_oauth2_auth_manager(session)

    return Catalog(name, **properties)
