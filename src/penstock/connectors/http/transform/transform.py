"""The transform `http`: sends rows as requests, and reads columns from the responses."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyarrow as pa

from penstock.connectors.http.client import HttpClient
from penstock.connectors.http.request_lines import UrlTemplate
from penstock.connectors.http.targets import find_targets
from penstock.connectors.http.transform.bodies import Result, encode_rows, read_results
from penstock.connectors.http.transform.config import HttpTransformConfig
from penstock.connectors.http.transform.exchange import Exchange
from penstock.core.errors import (
    OptionError,
    PlanError,
    RecordError,
    ValidationErrors,
    flatten_errors,
    raise_all,
)
from penstock.core.text import plural
from penstock.sdk import DecodeError, Failure, registry
from penstock.sdk.columns.checks import check_added_columns, check_columns
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.transform import PayloadTransform


class HttpTransform(PayloadTransform[HttpTransformConfig]):
    """Sends rows as HTTP requests, and reads columns from the responses.

    Connection failures, timeouts and the statuses of `retry` are retried with backoff, or after
    the time of a `Retry-After` header. A row becomes a dead letter if its request has a status of
    `reject`, or if its result is missing or cannot be decoded. The rows of a rejected request with
    several rows are first sent again one by one. If a response with `response: replace` has a wrong
    result, all rows of its request become dead letters. Other error statuses, such as 401, stop the
    run. Redirects are not followed.

    A request may be repeated after a failure, so the service must accept the same request twice.
    Up to `concurrency` requests of a task run in parallel, and rows keep their order.

    ```yaml
    type: http
    from: orders
    url: https://api.example.com/score
    auth: {token: "${env:TOKEN}"}
    framing: array
    max_records: 100
    columns: [id, amount]
    schema: score DOUBLE, reason STRING
    ```
    """

    extra = "http"
    client_modules = ("aiohttp", "msgspec", "jsonpointer")
    _client: tuple[int, HttpClient] | None = None

    @property
    def deterministic(self) -> bool:  # type: ignore[override]
        return self.config.deterministic

    def validate(self) -> None:
        super().validate()
        config = self.config
        raise_all(self._schema_errors())
        needs_json = config.framing == "array" or config.payload_version or config.pointer
        is_json = isinstance(self.format, registry.find("format", "json"))
        if needs_json and self.format is not None and not is_json:
            raise OptionError.of(
                "format", code="wrong-format",
                message="framing: array, payload_version and pointer require format: json",
                hint="Set format: json, or framing: single.",
            )  # fmt: skip
        if self.format is not None and config.response == "add":
            self.format.check_columns(self._declared())

    def _schema_errors(self) -> Iterator[OptionError]:
        overrides = {name: type_ for name, type_ in self.config.schema_override.items() if type_}
        for option, columns in (("schema", self.config.declared), ("schema_override", overrides)):
            try:
                arrow_schema(columns or {})
            except (PlanError, ValidationErrors) as error:
                yield from (OptionError.inside(option, inner) for inner in flatten_errors(error))

    def check(self) -> None:
        """Sends a HEAD request to the URL, unless the URL depends on columns."""
        if self.config.url.constant is not None:
            client = HttpClient(self.config)
            try:
                client.check(self.config.url.constant)
            finally:
                client.close()

    def output(self, schema: pa.Schema) -> pa.Schema:
        config = self.config
        errors = [*config.url.check(schema, "url")]
        for name, template in config.headers.items():
            errors += template.check(schema, "headers", name)
        if config.body is not None:
            errors += check_columns(sorted(config.body.columns), schema, "body")
        errors += check_columns(config.columns, schema, "columns")
        if config.response == "add":
            errors += check_added_columns(schema, self._declared(), "a result")
        raise_all(errors)
        return self._columns(schema)

    def close(self) -> None:
        if self._client is not None and self._client[0] == os.getpid():
            self._client[1].close()
        self._client = None

    def apply(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch | Failure]:
        assert self.format is not None
        targets, failures = find_targets(self.config, UrlTemplate(self.config.url), batch)
        operation = None if self.changes is None else self.changes.column
        messages, errors = encode_rows(self.config, self.format, batch, operation)
        messages = {index: text for index, text in messages.items() if index in targets}
        errors |= {failure.index: failure.error for failure in failures}
        exchange = Exchange(self.config, self._open_client(), targets, messages, errors)
        if self.config.response == "ignore":
            answered = [index for group, _ in exchange.responses() for index in group]
            yield batch.take(pa.array(sorted(answered), pa.int64()))
        else:
            yield self._with_results(batch, exchange)
        yield from (Failure(index, errors[index]) for index in sorted(errors))

    def _open_client(self) -> HttpClient:
        """Returns the client of this process. A fork cannot use the client of its parent."""
        if self._client is None or self._client[0] != os.getpid():
            self._client = os.getpid(), HttpClient(self.config, self.config.concurrency)
        return self._client[1]

    def _with_results(self, batch: pa.RecordBatch, exchange: Exchange) -> pa.RecordBatch:
        """Returns the output of all responses. Adds the errors of rows to those of the exchange."""
        found: list[tuple[tuple[int, ...], Result]] = []
        for group, response in exchange.responses():
            try:
                results = read_results(self.config, response)
                if self.config.response == "add":
                    _check_count(results, group)
            except RecordError as error:
                exchange.errors |= dict.fromkeys(group, error)
                continue
            is_added = self.config.response == "add"
            found += [
                ((group[index],) if is_added else group, result)
                for index, result in enumerate(results)
            ]
        return self._decode(batch, found, exchange.errors)

    def _decode(
        self,
        batch: pa.RecordBatch,
        found: list[tuple[tuple[int, ...], Result]],
        errors: dict[int, RecordError],
    ) -> pa.RecordBatch:
        """Returns the output of results, each of which belongs to rows. Adds errors of rows."""
        assert self.format is not None
        operation = self._operation_in_envelope
        columns = self._result_columns(batch.schema)
        decoded = self.format.rows(
            pa.array([result.payload for _, result in found], pa.binary()),
            columns if operation is None else _without(columns, operation),
        )
        for failure in decoded.failures:
            errors |= dict.fromkeys(found[failure.index][0], failure.error)
        index = decoded.index
        numbers = range(decoded.rows.num_rows) if index is None else index.to_pylist()
        valid = [
            (place, number)
            for place, number in enumerate(numbers)
            if not any(row in errors for row in found[number][0])
        ]
        rows = decoded.rows.take(pa.array([place for place, _ in valid], pa.int64()))
        arrays = dict(zip(rows.schema.names, rows.columns, strict=True))
        if operation is not None:
            arrays[operation] = pa.array([found[number][1].operation for _, number in valid])
        if self.config.response == "add":
            first = pa.array([found[number][0][0] for _, number in valid], pa.int64())
            kept = batch.take(first)
            arrays |= dict(zip(kept.schema.names, kept.columns, strict=True))
        schema = self._columns(batch.schema)
        return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)

    @property
    def _operation_in_envelope(self) -> str | None:
        """The operation column that results have in their envelope, or None."""
        replaces = self.config.response == "replace" and self.config.payload_version == 1
        return self.changes.column if self.changes is not None and replaces else None

    def _columns(self, schema: pa.Schema) -> pa.Schema:
        """Returns the columns of the output for rows of `schema`."""
        if self.config.response == "ignore":
            return schema
        results = self._result_columns(schema)
        return results if self.config.response == "replace" else pa.schema([*schema, *results])

    def _result_columns(self, schema: pa.Schema) -> pa.Schema:
        """Returns the columns of results. Those in place of changes have an operation column."""
        if self.config.response == "add":
            return self._declared()
        if self.config.declared is None:
            columns = _overridden(schema, self.config.schema_override)
        else:
            columns = arrow_schema(self.config.declared)
        operation = None if self.changes is None else self.changes.column
        if operation is None or operation in columns.names:
            return columns
        return columns.append(schema.field(operation))

    def _declared(self) -> pa.Schema:
        """Returns the declared columns of results. Raises PlanError."""
        assert self.format is not None
        declared = self.config.declared
        columns = self.format.declared_schema() if declared is None else arrow_schema(declared)
        if columns is None:
            raise PlanError(
                "the columns of the responses are not declared", code="missing-option",
                hint="Add schema: name STRING, ..., or set response: ignore.",
            )  # fmt: skip
        return columns


def _check_count(results: list[Result], group: tuple[int, ...]) -> None:
    if len(results) != len(group):
        raise DecodeError(
            f"expected {plural(len(group), 'result')}, found {len(results)}", code="wrong-results"
        )


def _overridden(schema: pa.Schema, overrides: dict[str, str | None]) -> pa.Schema:
    """Returns columns with other types, without those of type None, and with further ones."""
    types = arrow_schema({name: type_ for name, type_ in overrides.items() if type_})
    fields = [
        types.field(field.name) if field.name in types.names else field
        for field in schema
        if overrides.get(field.name, "") is not None
    ]
    return pa.schema([*fields, *(field for field in types if field.name not in schema.names)])


def _without(schema: pa.Schema, name: str) -> pa.Schema:
    return schema.remove(schema.get_field_index(name))
