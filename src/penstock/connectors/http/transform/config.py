"""Options of the HTTP transform."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from penstock.connectors.http.config import RowRequestConfig
from penstock.connectors.http.framing import Pointer
from penstock.sdk import ByteSize
from penstock.sdk.columns.template import Template


class HttpTransformConfig(RowRequestConfig):
    max_records: int = Field(default=500, ge=1)
    """The maximum number of rows of a request with `framing: lines` or `array`."""
    columns: list[str] = []
    """The columns to send, by default all."""
    body: Template | None = None
    """The body of a request with a `single` row, in place of the encoded columns. `{column}` is
    replaced by the value as JSON, with quotes around a text: `{{"query": {name}}}`."""
    payload_version: Literal[0, 1] = 0
    """The form of rows in requests and responses: 0 is the row itself. 1 is an object with the
    operation (`i`, `u`, `ub` or `d`) and the row: `{"metadata": {"op": "i"}, "data": ROW}`."""
    format: str | dict[str, Any] = "json"
    """The format of rows in requests and responses: a name, or a map of `type` and options."""
    response: Literal["add", "replace", "ignore"] = "add"
    """The use of a response. `add`: a result for each row of the request, in order, whose columns
    are added to the row. `replace`: the results, of any number, are the rows of the output.
    `ignore`: the rows are the output."""
    declared: str | dict[str, str] | None = Field(default=None, alias="schema")
    """The columns of results, as a DDL string or a map of name to type. With `response: replace`
    by default the columns of the input."""
    schema_override: dict[str, str | None] = {}
    """Changes to the columns of the input, with `response: replace` and without `schema`: a map of
    column to type, or to null for a column that results lack. Other names are added."""
    pointer: Pointer = ""
    """The JSON pointer of the result in a response, such as `/data`, or of the array of results.
    The body itself by default."""
    max_message_size: ByteSize = Field(default=16 << 20, ge=1)
    """The maximum size of a response body. The rows of a request with a larger one become dead
    letters."""
    after_retries: Literal["fail", "dead_letter"] = "fail"
    """The action for the rows of a request whose attempts are used up: restart the query with
    backoff, so that no row is lost while the server is down, or dead letters."""
    deterministic: bool = False
    """Whether the same request always has the same response, which exactly-once delivery
    requires."""

    @model_validator(mode="after")
    def _check_forms(self) -> Self:
        if self.body is not None and (self.framing != "single" or self._has_no_body):
            raise ValueError("body requires framing: single, and a method with a body")
        if self.body is not None and (self.columns or self.payload_version):
            raise ValueError("body takes the place of columns and payload_version")
        if self.schema_override and (self.response != "replace" or self.declared is not None):
            raise ValueError("schema_override requires response: replace, without schema")
        if self.response == "ignore" and self.declared is not None:
            raise ValueError("schema has no meaning with response: ignore")
        return self

    @property
    def _has_no_body(self) -> bool:
        return self.method in ("GET", "DELETE")
