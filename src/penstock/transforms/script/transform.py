"""The transform `script`: a function in JavaScript or TypeScript."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import pyarrow as pa
from pydantic import Field

from penstock.core.errors import PenstockError, PlanError
from penstock.transforms.sandbox.cells import Cells, kind
from penstock.transforms.sandbox.child import CodeError
from penstock.transforms.sandbox.transform import SandboxConfig, SandboxTransform
from penstock.transforms.script.return_type import returned_columns
from penstock.transforms.script.typescript import without_types

_TYPESCRIPT = (".ts", ".mts", ".cts")


class ScriptConfig(SandboxConfig):
    code: str | None = None
    """The script, which defines the function named by `function`."""
    language: Literal["javascript", "typescript"] | None = None
    """The language. By default TypeScript for a file that ends in `.ts`, otherwise JavaScript."""
    function: str = Field(default="process", pattern=r"^[A-Za-z_$][A-Za-z0-9_$]*$")
    """The name of the function in the code."""


class Script(SandboxTransform[ScriptConfig]):
    """A function in JavaScript or TypeScript, which is called for each row.

    `process(input)` receives a row as an object. It returns an object, an array of objects, or null
    to drop the row. The columns of the output are those of `schema`, or of the type that a function
    in TypeScript returns, or otherwise those of the input. Types of TypeScript are not checked.

    The script runs in V8 without access to files, network, environment, timers and modules. A row
    on which it throws an error, exceeds `timeout` or needs more than `max_memory` becomes a dead
    letter.

    A BIGINT beyond 2^53 is a BigInt. DECIMAL and times are text, BINARY is a Uint8Array.

    Parallel by partition. Each worker process has its own global variables, which are not durable.

    ```yaml
    type: script
    from: flights
    schema: carrier STRING, hours DOUBLE
    code: |
      function process(input) {
        if (input.dep_delay === null) return null;
        return {carrier: input.carrier, hours: input.dep_delay / 60};
      }
    ```
    """

    engine = "penstock.transforms.script.engine:ScriptEngine"
    label = "the script is not valid"
    extra = "script"
    client_modules = ("py_mini_racer", "ast_grep_py")

    _columns: tuple[pa.Schema, pa.Schema] | None = None
    _closed: bool | None = None

    @property
    def is_typescript(self) -> bool:
        """Whether the code is TypeScript."""
        language, file = self.config.language, self.config.file
        if language is None:
            return file is not None and file.endswith(_TYPESCRIPT)
        return language == "typescript"

    def warnings(self) -> Sequence[PenstockError]:
        if not self._has_input_columns():
            return ()
        return [
            PlanError(
                f'the columns of "{self.context.node}" are assumed to be those of its input: the '
                "code does not declare them",
                code="unknown-output", hint="Declare the columns, as in schema: name STRING, ...",
            )
        ]  # fmt: skip

    def output(self, schema: pa.Schema) -> pa.Schema:
        if self._columns is None or self._columns[0] != schema:
            self._columns = schema, self._returned(schema) or super().output(schema)
        return self._columns[1]

    def is_closed(self) -> bool:
        if self._closed is None:
            self._closed = self._has_input_columns()
        return self._closed

    def _has_input_columns(self) -> bool:
        return self.config.columns is None and self._returned(pa.schema([])) is None

    def _returned(self, schema: pa.Schema) -> pa.Schema | None:
        """Returns the columns of the type that the function returns, if there is one."""
        if self.config.columns is not None or not self.is_typescript:
            return None
        try:
            return returned_columns(self.code().text(), self.config.function, schema)
        except CodeError as error:
            raise self.code().error(error, "the columns of the output are not known") from None

    def program(self) -> bytes:
        text = self.code().text()
        if not self.is_typescript:
            return text.encode()
        self._returned(pa.schema([]))
        try:
            return without_types(text).encode()
        except CodeError as error:
            raise self.code().error(error, self.label) from None

    def engine_options(self) -> dict[str, Any]:
        return super().engine_options() | {"function": self.config.function}

    def encode(self, batch: pa.RecordBatch) -> tuple[dict[str, Any], bytes]:
        cells = Cells(texts=True)
        columns = [cells.column(column) for column in batch.columns]
        kinds = [kind(field) for field in batch.schema]
        payload = json.dumps(columns, ensure_ascii=False).encode()
        return {"inputs": batch.schema.names, "kinds": kinds}, payload
