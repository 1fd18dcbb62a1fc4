"""The options of the transform `python`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from penstock.core.time_limit import DEFAULT_TIMEOUT
from penstock.core.units import PositiveDuration
from penstock.sdk import Config
from penstock.spec.model_types import NameList


class StateOptions(Config):
    """The state of a Python function."""

    key: NameList = Field(min_length=1)
    """The columns of the key. Each key has a state of its own."""
    time: str | None = None
    """The column of the event time, for timers and `ttl`. By default both use the clock."""
    ttl: PositiveDuration | None = None
    """The time after the last row of a key after which its state is removed."""


class PythonConfig(Config):
    code: str | None = None
    """Python source that defines the function (or class) named by `function`."""
    function: str = "transform"
    """The name in `code`, or `module:name` of an installed module or one beside the file."""
    per: Literal["batch", "row"] = "batch"
    """Whether the function takes a `pyarrow.RecordBatch` or one row as a dict."""
    options: dict[str, Any] = {}
    """Keyword arguments for a class's constructor, or for each call of a function."""
    columns: str | dict[str, str] | None = Field(default=None, alias="schema")
    """The columns of the output, as a DDL string or a map of name to type.

    By default the columns of the function's result for an empty batch."""
    state: StateOptions | None = None
    """A state for each key. The function then takes a row, or the rows of a key, and the state."""
    dependencies: list[str] = []
    """The Python packages that the code needs, as `numpy>=2`. A missing package is an error of
    `penstock check`; nothing is installed. On a cluster all machines need them."""
    timeout: PositiveDuration = DEFAULT_TIMEOUT
    """The maximum time of one call, and of `open`. A call without a result by then is an error of
    the row. With `per: batch` it is repeated with fewer rows, down to one."""
    deterministic: bool = False
    """Whether the same input always gives the same output, which exactly-once delivery requires."""

    @model_validator(mode="after")
    def _check_code_or_module(self) -> PythonConfig:
        if self.code is None and ":" not in self.function:
            raise ValueError('expected "code", or "function" as module:name')
        return self
