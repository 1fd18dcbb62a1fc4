"""Functions that SQL can call, resolved: parameters, result and code."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from penstock.core.location import Location
from penstock.core.time_limit import DEFAULT_TIMEOUT
from penstock.sdk.columns.type_names import sql_name
from penstock.sql.canonical import canonical_sql

ASYNC_TIMEOUT = 30.0
"""The seconds of a call of an async function."""
FunctionKind = Literal["scalar", "aggregate", "table"]


@dataclass(frozen=True)
class Parameter:
    """A parameter. `type` is None for a function in SQL without types.

    With `nullable` the function is called with nulls; otherwise a null argument gives null.
    """

    name: str
    type: pa.DataType | None
    nullable: bool = True


@dataclass(frozen=True)
class Function:
    """A function. It is in SQL if `sql` is given, otherwise in Python.

    `code` is the text of a whole file or of a function's body, and `entry` the name of the function
    in the file, empty for a body. Line `n` of the code is line `first_line + n - 1` of `file`.
    `returns` of a table function is the struct of its columns. `cases` are those of a
    `TypedFunction`.
    """

    name: str
    kind: FunctionKind = "scalar"
    parameters: tuple[Parameter, ...] = ()
    returns: pa.DataType | None = None
    code: str = ""
    entry: str = ""
    sql: str = ""
    file: str = ""
    first_line: int = 1
    base: Path = field(default_factory=Path)
    is_async: bool = False
    vectorized: bool = False
    deterministic: bool = True
    concurrency: int = 10
    timeout: float | None = None
    where: Location | None = field(default=None, compare=False)
    cases: tuple[tuple[str, str], ...] = ()

    @property
    def time_limit(self) -> float:
        """The maximum seconds of a call."""
        if self.timeout is not None:
            return self.timeout
        return ASYNC_TIMEOUT if self.is_async else DEFAULT_TIMEOUT

    @property
    def signature(self) -> str:
        """The function as in a declaration: `f(x BIGINT) RETURNS BIGINT`."""
        parameters = (
            f"{each.name} {sql_name(each.type)}" if each.type is not None else each.name
            for each in self.parameters
        )  # fmt: skip
        text = f"{self.name}({', '.join(parameters)})"
        if self.returns is None:
            return text
        if self.kind == "table":
            assert isinstance(self.returns, pa.StructType)
            columns = (f"{column.name} {sql_name(column.type)}" for column in self.returns)
            return f"{text} RETURNS TABLE ({', '.join(columns)})"
        return f"{text} RETURNS {sql_name(self.returns)}"

    @property
    def hash_as_written(self) -> str:
        """The hash of the code with its comments and line ends, as earlier versions store it."""
        return _hash(self.sql or self.code)

    def definition(self) -> dict[str, Any]:
        """Returns the parts that decide the result, as JSON. The code is a hash."""
        code = canonical_sql(self.sql) if self.sql else self.code.replace("\r\n", "\n")
        return {
            "kind": self.kind,
            "signature": self.signature,
            "nullable": [each.nullable for each in self.parameters],
            "code": _hash(code),
            "entry": self.entry,
            "vectorized": self.vectorized,
        }


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
