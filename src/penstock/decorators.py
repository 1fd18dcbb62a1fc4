"""Decorators of Python functions: `@udf`, `@udaf` and `@udtf` for SQL, `@stateful` for state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class _Decorator:
    """A decorator with or without options. The decorated function itself is not changed.

    The options are literals: `penstock check` reads them without running the file.
    """

    @overload
    def __call__(self, function: F) -> F: ...

    @overload
    def __call__(
        self,
        *,
        name: str | None = None,
        returns: str | None = None,
        vectorized: bool = False,
        deterministic: bool = True,
        concurrency: int = 10,
        timeout: float | str | None = None,
        ordered: bool = True,
        unordered: bool = False,
        allowed_in_flight: int = 10,
        dependencies: Sequence[str] = (),
    ) -> Callable[[F], F]: ...

    def __call__(self, function: Any = None, **options: Any) -> Any:
        """Marks a function for SQL.

        `name` is the name in SQL, and `returns` the type of the result, by default that of the
        annotation; of a table function its columns. A `vectorized` function takes and returns
        Arrow arrays. `timeout` limits a call, by default to 30 seconds with `async def` and to an
        hour otherwise. `concurrency` is for `async def`;
        `allowed_in_flight` is another name of `concurrency`. Rows keep their order, also with
        `ordered=False` or `unordered=True`, which permit another order.
        `dependencies` are requirements such as `"numpy>=2"`.
        """
        return function if function is not None else lambda decorated: decorated


udf = _Decorator()
"""A scalar function: a value for each row."""
udaf = _Decorator()
"""An aggregate function: its arguments are lists of the values of a group."""
udtf = _Decorator()
"""A table function: rows, as tuples or dicts, for each row."""


def stateful(
    *, key: str | Sequence[str], time: str | None = None, ttl: str | float | None = None
) -> Callable[[T], T]:
    """Declares the state of a function or class of a transform of type `python`.

    The options are those of `state` in a pipeline file: literals, which `penstock check` reads
    without running the file.
    """
    return lambda decorated: decorated
