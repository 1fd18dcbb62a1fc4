"""The transform `python` with the option `state`."""

from __future__ import annotations

import atexit
import inspect
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.core.errors import OptionError, PlanError, RecordError, raise_all
from penstock.core.exits import exception_text
from penstock.core.text import did_you_mean
from penstock.core.time_limit import call_within
from penstock.sdk import DataFrameTransform
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.forked_calls import call_forked
from penstock.transforms.columns import require
from penstock.transforms.python_code import import_function, load_code, modified_time
from penstock.transforms.python_config import PythonConfig, StateOptions
from penstock.transforms.python_options import option_errors
from penstock.transforms.stateful.calls import Calls
from penstock.transforms.stateful.keyed_states import KeyedStates
from penstock.transforms.stateful.task import StatefulTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.sdk import Relation


@dataclass(frozen=True)
class UserCode:
    """The function or class of a node, which is created and opened once in each process."""

    code: str | None
    function: str
    options: Mapping[str, Any]
    base: Path
    node: str
    timeout: float

    def load(self) -> Any:
        """Returns the function or class. Raises PlanError."""
        if self.code is not None:
            return load_code(self.code, self.function, self.node)
        return import_function(self.function, self.base)

    def check(self) -> None:
        """Checks that the code can be loaded, once for each version of it. Raises PlanError.

        The code runs in a fork, which it may end.
        """
        if self._version() in _CHECKED:
            return
        try:
            call_forked(lambda: call_within(self.timeout, self._check))
        except RecordError as error:
            raise self._error(error.message) from error
        _CHECKED.add(self._version())

    def _check(self) -> None:
        target = self.load()
        if not inspect.isfunction(target) and not hasattr(target, "process"):
            raise PlanError(
                f"{self.function} has no method process", code="unknown-function",
                hint="Write a function, or a class with the method process(row, state).",
            )  # fmt: skip

    def opened(self) -> Any:
        """Returns the function, or the open instance of the class, of this process."""
        known = _OPEN.get(self.node)
        if known is not None and known[0] == self._version():
            return known[1]
        _close(self.node)
        try:
            target = call_within(self.timeout, self._open)
        except PlanError:
            raise
        except Exception as error:
            raise self._error(exception_text(error)) from error
        _OPEN[self.node] = self._version(), target
        return target

    def _open(self) -> Any:
        target = self.load()
        if not inspect.isclass(target):
            return target
        instance = target(**self.options)
        if hasattr(instance, "open"):
            instance.open()
        return instance

    def _version(self) -> tuple[str, int | None]:
        return str(self), modified_time(self.function, self.base)

    def _error(self, reason: str) -> PlanError:
        message = f'transform "{self.node}" cannot be opened: {reason}'
        return PlanError(message, code="failed-open")


_CHECKED: set[object] = set()
"""The versions of code that can be loaded."""
_OPEN: dict[str, tuple[object, Any]] = {}
"""The version and the open instance of each node in this process."""


def _close(node: str) -> None:
    _, instance = _OPEN.pop(node, (None, None))
    if hasattr(instance, "close"):
        with suppress(Exception):
            instance.close()


@atexit.register
def _close_all() -> None:
    for node in list(_OPEN):
        _close(node)


@dataclass(frozen=True)
class _States:
    """A function that creates the states of a bucket, without keys."""

    code: UserCode
    columns: pa.Schema
    key: tuple[str, ...]
    time: str | None
    ttl: int | None
    by_row: bool

    def __call__(self) -> KeyedStates:
        target = self.code.opened()
        timeout = self.code.timeout
        calls = Calls(target, self.columns, by_row=self.by_row, timeout=timeout)
        return KeyedStates(calls, self.key, self.time, self.ttl)


class StatefulPython(DataFrameTransform[PythonConfig]):
    """A Python function with a state for each key: see the option `state` of `type: python`."""

    rejects_rows = True

    @property
    def _state(self) -> StateOptions:
        assert self.config.state is not None
        return self.config.state

    def validate(self) -> None:
        raise_all(option_errors(self.config))
        super().validate()

    def relation(self) -> Relation:
        from penstock.sdk import Relation, State
        from penstock.sql.column_lineage import NewColumns
        from penstock.sql.dialect.relation import Output

        contents = (f"the state of each {', '.join(self._state.key)}",)
        return Relation(
            deterministic=self.config.deterministic,
            state=State(contents, emits_final_rows=True), lineage=NewColumns(), output=Output(),
        )  # fmt: skip

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema

        (frame,) = inputs.values()
        if self.changes is not None:
            raise OptionError.of(
                "state", message="a function with state cannot read changes", code="invalid-option",
                hint="Read the rows before they are aggregated.",
            )  # fmt: skip
        state = self._state
        require(self, frame, "state", state.key)
        names = {name.lower(): name for name in frame.columns}
        key = tuple(names[name.lower()] for name in state.key)
        _check_types(frame, key)
        assert self.config.columns is not None
        columns = arrow_schema(self.config.columns)
        code = self._code()
        code.check()
        create = _States(
            code, columns, key, self._time(frame, names),
            None if state.ttl is None else round(state.ttl * 1_000_000),
            self.config.per == "row",
        )  # fmt: skip
        task = StatefulTask(create, columns, state.time is not None, self.rejects)
        return task.apply(frame, key, from_arrow_schema(columns, prefer_timestamp_ntz=True))

    def _code(self) -> UserCode:
        config = self.config
        return UserCode(
            config.code, config.function, config.options, self.context.base, self.context.node,
            config.timeout,
        )  # fmt: skip

    def _time(self, frame: DataFrame, names: Mapping[str, str]) -> str | None:
        """Returns the column of event times. Raises OptionError."""
        from pyspark.sql.types import TimestampNTZType, TimestampType

        time = self._state.time
        if time is None:
            return None
        if time.lower() not in names:
            raise OptionError.of(
                "state", "time", message=f'there is no column "{time}"', code="unknown-column",
                hint=did_you_mean(time, frame.columns),
            )  # fmt: skip
        kind = frame.schema[names[time.lower()]].dataType
        if not isinstance(kind, TimestampType | TimestampNTZType):
            raise OptionError.of(
                "state", "time", code="unsupported-type",
                message=f'column "{time}" is {kind.simpleString().upper()}; expected a TIMESTAMP',
            )  # fmt: skip
        return names[time.lower()]


def _check_types(frame: DataFrame, key: tuple[str, ...]) -> None:
    """Raises OptionError for a key with parts, and for a VARIANT, which has no column of Arrow."""
    from pyspark.sql import types

    parts = (types.StructType, types.ArrayType, types.MapType)
    for field in frame.schema:
        is_key = field.name in key and isinstance(field.dataType, parts)
        if is_key or isinstance(field.dataType, types.VariantType):
            role = "cannot be a key" if is_key else "cannot be read by a function with state"
            raise OptionError.of(
                "state", code="unsupported-type",
                message=f'column "{field.name}" is {field.dataType.simpleString().upper()}, '
                f"which {role}",
            )  # fmt: skip
