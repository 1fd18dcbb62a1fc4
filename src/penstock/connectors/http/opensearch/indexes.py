"""Indexes that a sink writes to: they exist, or are created."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.connectors.http.opensearch.api import SearchServer, index_path
from penstock.connectors.http.opensearch.config import DocumentSinkConfig
from penstock.connectors.http.opensearch.errors import (
    is_existing,
    response_error,
    unknown_index,
)
from penstock.core.errors import RecordError, Rejected

_BAD_REQUEST, _NOT_FOUND = 400, 404
_DENIED = (401, 403)


class Indexes:
    """The indexes of a writer. A missing one is created with the mapping, or is an error."""

    def __init__(
        self, server: SearchServer, config: DocumentSinkConfig, mapping: Mapping[str, Any]
    ) -> None:
        self._server, self._config, self._mapping = server, config, mapping

    def find(self, name: str) -> RecordError | None:
        """Finds or creates an index. Returns the error of the rows of an index that is missing.

        Raises Permanent if the index is that of all rows. An index that the credentials must not
        look at is left to the server.
        """
        if name in self._server.known_indexes:
            return None
        response = self._server.request("HEAD", index_path(name))
        if response.status == _NOT_FOUND:
            if (error := self._create(name)) is not None:
                return error
        elif not self._config.is_final(response.status) and response.status not in _DENIED:
            raise response_error(response, self._config, name)
        self._server.known_indexes.add(name)
        return None

    def _create(self, name: str) -> RecordError | None:
        if not self._config.create:
            error = unknown_index(name)
            if self._config.index.constant is not None:
                raise error
            return Rejected(error.message, code=error.code)
        if self._has_template(name):
            return None
        response = self._server.request("PUT", index_path(name), {"mappings": self._mapping})
        created = self._config.is_final(response.status) or is_existing(response)
        if created or response.status in _DENIED:
            return None
        error_of_all = response_error(response, self._config, name)
        if response.status == _BAD_REQUEST and self._config.index.constant is None:
            return Rejected(error_of_all.message, code=error_of_all.code)
        raise error_of_all

    def _has_template(self, name: str) -> bool:
        """Returns whether an index template defines fields, also those of a data stream."""
        from msgspec import json

        response = self._server.request(
            "POST", f"/_index_template/_simulate_index{index_path(name)}"
        )
        if not self._config.is_final(response.status):
            return False
        return bool(json.decode(response.body).get("template", {}).get("mappings"))
