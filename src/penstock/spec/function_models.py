"""The model of functions that SQL can call."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from penstock.core.units import PositiveDuration
from penstock.spec.model_types import StrictModel


def _as_types(value: object) -> object:
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return dict.fromkeys(value)
    if not isinstance(value, dict):
        raise PydanticCustomError("types_type", "expected a map of name to type")
    return value


ParameterTypes = Annotated[
    dict[str, str | None],
    BeforeValidator(_as_types),
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "object",
                    "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                },
                {"type": "array", "items": {"type": "string"}},
            ]
        }
    ),
]
"""Parameters: a map of name to type, or a list of names."""


class FunctionSpec(StrictModel):
    """A function that SQL can call: in Python (`code`) or in SQL (`sql`)."""

    kind: Literal["scalar", "aggregate", "table"] = "scalar"
    """A value for each row, a value for each group (the arguments are lists), or rows for each
    row."""
    args: ParameterTypes = {}
    """The parameters: a map of name to type. A function in SQL may omit the types."""
    returns: str | None = None
    """The type of the result; of a table function its columns. A function in SQL may omit it."""
    code: str | None = None
    """Python: the body of the function, or source that defines a function of this name."""
    sql: str | None = None
    """A SQL expression over the parameters."""
    vectorized: bool = False
    """Whether the function takes and returns Arrow arrays instead of values."""
    skip_nulls: bool = False
    """Whether the result is null, without a call, if an argument is null."""
    deterministic: bool = True
    """Whether the same arguments always give the same result."""
    concurrency: int = Field(default=10, ge=1)
    """The maximum number of concurrent calls of an `async` function in a task."""
    timeout: PositiveDuration | None = None
    """The maximum time of one call: by default 30 seconds of an `async` function, and 1 hour of
    others. A row without a result by then has an error. A `vectorized` function is then called with
    fewer rows, down to one."""
    ordered: bool = True
    """Whether the rows of an `async` function keep their order. Rows also keep it with `false`,
    which permits another order."""
    dependencies: list[str] = []
    """Required Python packages, such as `numpy>=2`. They are not installed."""
