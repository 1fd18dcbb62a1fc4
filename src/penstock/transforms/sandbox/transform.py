"""The base of transforms that run code of users in a sandbox process."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, ClassVar, TypeVar

import pyarrow as pa
from pydantic import Field, model_validator

from penstock.core.errors import (
    OptionError,
    PlanError,
    RecordError,
    Rejected,
    ValidationErrors,
    flatten_errors,
    raise_all,
)
from penstock.core.time_limit import NoResult
from penstock.core.units import ByteSize, PositiveDuration
from penstock.sdk import Config, Transform, UserFile
from penstock.sdk.bisect_failures import FailedRow
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.record import Failure
from penstock.transforms.sandbox.cells import Cells
from penstock.transforms.sandbox.child import CodeError, Limits
from penstock.transforms.sandbox.code import Code, code_of
from penstock.transforms.sandbox.process import Crash, SandboxProcess
from penstock.transforms.sandbox.results import Results

FAILED = "function-failed"


class SandboxConfig(Config):
    code: str | None = None
    """The code."""
    file: UserFile | None = None
    """A file with the code, in place of `code`. It is read at the start of a run."""
    columns: str | dict[str, str] | None = Field(default=None, alias="schema")
    """The columns of the output, as a DDL string or a map of name to type.

    By default those of the input."""
    timeout: PositiveDuration = 10.0
    """The maximum time of one row. A row without a result by then is a dead letter."""
    max_memory: ByteSize = 256_000_000
    """The maximum memory of the code, in each worker process."""
    deterministic: bool = False
    """Whether the same input always gives the same output, which exactly-once delivery requires."""

    @model_validator(mode="after")
    def _check_code_or_file(self) -> SandboxConfig:
        if (self.code is None) == (self.file is None):
            raise ValueError('expected either "code" or "file"')
        if self.max_memory < 8_000_000:
            raise ValueError('expected "max_memory" of at least 8 MB')
        return self


S = TypeVar("S", bound=SandboxConfig)


class SandboxTransform(Transform[S]):
    """A transform whose code runs in a process of its own, one for each worker process.

    The process has an empty environment and cannot open files or sockets. A row on which the code
    fails, reaches a limit or ends its process becomes a dead letter, and the other rows of its
    batch are processed.
    """

    engine: ClassVar[str]
    """The class of the engine, as `module:name`."""
    label: ClassVar[str]
    """The start of the message about invalid code."""
    code_options = ("code",)
    exact_integers: ClassVar[bool] = True
    """Whether the engine returns large integers exactly."""

    _process: SandboxProcess | None = None
    _code: Code | None = None

    @property
    def deterministic(self) -> bool:  # type: ignore[override]
        return self.config.deterministic

    def validate(self) -> None:
        super().validate()
        raise_all(self._option_errors())

    def _option_errors(self) -> Iterator[PlanError]:
        try:
            self._declared()
        except (PlanError, ValidationErrors) as error:
            for inner in flatten_errors(error):
                yield OptionError.inside("schema", inner)
        try:
            self.open()
        except PlanError as error:
            yield error
        finally:
            self.close()

    def _declared(self) -> pa.Schema | None:
        return arrow_schema(self.config.columns) if self.config.columns is not None else None

    def version(self) -> object:
        return super().version(), self.code().content

    def code(self) -> Code:
        """Returns the code. A file is read once. Raises OptionError."""
        if self._code is None:
            self._code = code_of(self.config, self.places.get("code", ()))
        return self._code

    def output(self, schema: pa.Schema) -> pa.Schema:
        return self._declared() or _nullable(schema)

    def is_closed(self) -> bool:
        """Returns whether a value without a column is an error."""
        return self.config.columns is None

    def open(self) -> None:
        """Starts the process. Raises PlanError."""
        config = self.config
        limits = Limits(config.timeout, config.max_memory)
        try:
            self._process = SandboxProcess(
                self.engine, self.program(), self.engine_options(), limits
            )
        except CodeError as error:
            raise self.code().error(error, self.label) from None
        except RecordError as error:
            raise self.code().error(CodeError(error.message), self.label) from None

    def program(self) -> bytes:
        """Returns the code as the engine receives it. Raises PlanError."""
        return self.code().content

    def engine_options(self) -> dict[str, Any]:
        """Returns further parameters of the engine."""
        return {"no_result": NoResult.within(self.config.timeout).message}

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.owner == os.getpid():
            process.close()

    def encode(self, batch: pa.RecordBatch) -> tuple[dict[str, Any], bytes]:
        """Returns a batch as the engine reads it: parameters and a payload."""
        texts = Cells(texts=not self.exact_integers).rows(batch)
        return {}, json.dumps(texts, ensure_ascii=False).encode()

    def apply(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch | Failure]:
        schema = self.output(batch.schema)
        parameters, payload = self.encode(batch)
        parameters |= {"names": schema.names, "closed": self.is_closed(), "rows": batch.num_rows}
        content = self._call(parameters, payload)
        results = Results.read(content, exact_integers=self.exact_integers)
        yield from results.rows(schema)
        for index, message, line, column in results.failures:
            reason = message + self.code().place(line, column)
            yield Failure(index, Rejected(reason, code=FAILED))

    def _call(self, parameters: dict[str, Any], payload: bytes) -> bytes:
        """Returns the results of a batch. After a crash on an unknown row, calls row by row."""
        for stepwise in (False, True):
            try:
                return self._running().call({**parameters, "stepwise": stepwise}, payload)
            except Crash as crash:
                self._process = None
                last = crash
            if last.row is not None:
                raise FailedRow(last.row, last.error)
        raise last.error

    def _running(self) -> SandboxProcess:
        """Returns the process of this worker process, which a fork does not share."""
        if self._process is None or self._process.owner != os.getpid():
            self.open()
        assert self._process is not None
        return self._process


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])
