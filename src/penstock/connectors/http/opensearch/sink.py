"""The sinks of Elasticsearch and OpenSearch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.http.opensearch.api import SearchServer, index_path
from penstock.connectors.http.opensearch.config import DocumentSinkConfig
from penstock.connectors.http.opensearch.errors import response_error, unknown_index
from penstock.connectors.http.opensearch.mapping import mapping_of
from penstock.connectors.http.opensearch.names import Parts, key_parts
from penstock.connectors.http.opensearch.writer import DocumentWriter
from penstock.core.errors import OptionError, PenstockError, PlanError, raise_all
from penstock.sdk import BatchId, Capability, Sink, Writer, registry
from penstock.sdk.columns.checks import check_column, check_primary_key
from penstock.sdk.database.names import invalid_name

_RESERVED = frozenset(
    ["_id", "_index", "_source", "_routing", "_version", "_seq_no", "_primary_term", "_type",
     "_field_names", "_ignored", "_nested_path", "_tier", "_feature"]
)  # fmt: skip
"""Names of metadata of documents, which are no fields."""
_BAD_REQUEST, _NOT_FOUND = 400, 404


class DocumentSink(Sink[DocumentSinkConfig]):
    """Base class of the sinks of Elasticsearch and OpenSearch."""

    acknowledges = "the server has stored each document"
    capabilities = frozenset({Capability.BYTES, Capability.UPSERT, Capability.DELETE})
    extra = "http"
    client_modules = ("aiohttp", "msgspec")
    max_rows_per_write = 5_000

    @property
    def overwriting_columns(self) -> Sequence[str] | None:
        key = self.config.key
        return None if key is None else sorted({*key.columns, *self.config.index.columns})

    def check_schema(self, columns: pa.Schema) -> None:
        super().check_schema(columns)
        json: Any = registry.find("format", "json")
        if not isinstance(self.format, json) or self.format.config.registry is not None:
            raise PlanError(
                "expected format: json without a registry: a document is a JSON object",
                code="wrong-format", hint="Remove the format.",
            )  # fmt: skip
        raise_all(self._check_columns(columns))

    def _check_columns(self, columns: pa.Schema) -> Iterator[PenstockError]:
        config = self.config
        yield from config.index.check(columns, "index")
        if config.key is not None:
            yield from config.key.check(columns, "key")
        option = "key" if config.key is not None else "primary_key"
        for _, name in self._key or ():
            if name is not None and name in columns.names:
                yield from check_column(
                    name, columns, option, accepts=_has_text,
                    expected="Use columns of texts, numbers or times.",
                )  # fmt: skip
        for name in sorted(_RESERVED.intersection(columns.names)):
            yield PlanError(
                f'column "{name}" has the name of metadata of documents', code="reserved-column",
                hint="Rename the column in a transform.",
            )  # fmt: skip
        for name in columns.names:
            if "\0" in name:
                yield invalid_name(name.replace("\0", "\\0"), "a field of a document has no NUL")
        if self.mode == "upsert":
            yield from self._check_upsert()
        elif self.config.action == "update" and self.config.key is None:
            yield OptionError.of(
                "action", message="action: update requires the ID of the document",
                code="missing-option", hint="Set key, or mode: upsert with primary_key.",
            )  # fmt: skip

    def _check_upsert(self) -> Iterator[OptionError]:
        config, key = self.config, self.primary_key
        if config.action == "create":
            yield OptionError.of(
                "action", message="mode: upsert requires action: index or update",
                code="invalid-option",
                hint="Remove the option action.",
            )  # fmt: skip
        if config.key is not None:
            yield from check_primary_key(key, config.key.columns, "key")
        for option, used in (("key", config.key), ("index", config.index)):
            for name in sorted(used.columns - {*key}) if used is not None else ():
                yield OptionError.of(
                    option, code="primary-key", hint=f"Remove {{{name}}}.",
                    message=f'column "{name}" is not in the primary key: after a change of it the '
                    "old document would remain",
                )  # fmt: skip

    def check(self) -> None:
        """Sends a request without documents, which needs the credentials."""
        config, name = self.config, self.config.index.constant
        server = self.open()
        try:
            response = server.bulk(b"", compressed=False)
            if response.status != _BAD_REQUEST and not config.is_final(response.status):
                raise response_error(response, config)
            if name is not None and not config.create:
                response = server.request("HEAD", index_path(name))
                if response.status == _NOT_FOUND:
                    raise unknown_index(name)
        finally:
            server.close()

    def open(self) -> SearchServer:
        return SearchServer(self.config)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return DocumentWriter(client, self.config, self._key, self._mapping(schema))

    @property
    def _key(self) -> Parts | None:
        if self.config.key is not None:
            return self.config.key.parts
        return key_parts(self.primary_key) if self.mode == "upsert" else None

    def _mapping(self, schema: pa.Schema) -> Mapping[str, Any]:
        assert self.format is not None
        options = self.format.config
        if options.wrapper != "none":
            schema = pa.schema([])
        return mapping_of(schema, options.timestamps, options.decimals)


def _has_text(type_: pa.DataType) -> bool:
    is_binary = pa.types.is_binary(type_) or pa.types.is_large_binary(type_)
    return not (pa.types.is_nested(type_) or is_binary)


class ElasticsearchSink(DocumentSink):
    """Writes rows as documents to Elasticsearch, by its bulk API.

    A row is added as a document, or replaces the document with its ID. With `mode: upsert` the ID
    is the primary key, and deletes remove documents. Without IDs a batch that is repeated after a
    crash adds its documents again.

    A document that the server rejects, as for a field of another type, is a dead letter with the
    reason of the server; so is a row with NaN or an infinity. Connection failures, timeouts and the
    statuses of `retry` are retried, also those of single documents.

    ```yaml
    type: elasticsearch
    from: orders
    mode: upsert
    url: http://localhost:9200
    auth: {api_key: "${env:ELASTIC_API_KEY}"}
    index: orders
    ```
    """


class OpensearchSink(DocumentSink):
    """Writes rows as documents to OpenSearch, by its bulk API.

    It has the options and guarantees of the sink `elasticsearch`.

    ```yaml
    type: opensearch
    from: orders
    mode: upsert
    url: http://localhost:9200
    auth: {username: penstock, password: "${env:OPENSEARCH_PASSWORD}"}
    index: orders
    ```
    """
