"""A Python function over Arrow record batches."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pyarrow as pa
from pydantic import Field, model_validator

from penstock.core.errors import OptionError, UserError
from penstock.core.text import did_you_mean
from penstock.sdk import Config, PlanError, Transform
from penstock.sdk.kit.ddl import arrow_schema


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

    When absent the function is tried on a batch without rows."""
    deterministic: bool = False
    """Whether the same rows always give the same result; exactly-once sinks need it."""

    @model_validator(mode="after")
    def _one_place(self) -> PythonConfig:
        if self.code is None and ":" not in self.function:
            raise ValueError('give "code", or "function" as module:name')
        return self


class Python(Transform[PythonConfig]):
    """A Python function over Arrow record batches, or over rows as dicts.

    A function gives a RecordBatch, a Table, a list of dicts, None (no rows), or yields several of
    these. A class is made once in each task: `open()`, then `transform(batch)` for each batch,
    then `close()`. With `per: row` it gives a dict, a list of dicts, or None to drop the row; a
    row that it raises on goes to the dead letters.

    Parallel by partition. Memory between batches is not kept and not safe: use SQL for that.

    ```yaml
    type: python
    from: flights
    schema: carrier STRING, hours DOUBLE
    code: |
      import pyarrow.compute as pc

      def transform(batch):
          hours = pc.divide(batch.column("dep_delay"), 60.0)
          return batch.select(["carrier"]).append_column("hours", hours)
    ```
    """

    _call: Callable[..., Any] | None = None
    _instance: Any = None

    @property
    def deterministic(self) -> bool:  # type: ignore[override]
        return self.config.deterministic

    def examine(self) -> None:
        if self.config.columns is not None:
            try:
                arrow_schema(self.config.columns)
            except PlanError as error:
                raise OptionError.of(
                    "schema", message=error.message, code=error.code, hint=error.hint
                ) from error
        elif self.config.per == "row":
            raise PlanError(
                'with "per: row" the output\'s columns must be declared',
                code="missing-option",
                hint="add schema: name STRING, ...",
            )
        if self.config.code is not None:
            self._look_at(self.config.code)

    def _look_at(self, code: str) -> None:
        try:
            tree = ast.parse(code)
        except SyntaxError as error:
            raise OptionError.of(
                "code",
                message=f"the code is not Python: {error.msg}",
                code="invalid-python",
                at=(error.lineno or 1, error.offset or 1),
            ) from error
        names = list(_defined(tree))
        if self.config.function not in names:
            raise OptionError.of(
                "code",
                message=f'the code defines no "{self.config.function}"',
                code="unknown-function",
                hint=did_you_mean(self.config.function, names) if names else None,
                at=(1, 1),
            )

    def output(self, schema: pa.Schema) -> pa.Schema:
        if self.config.columns is not None:
            self._load()
            return arrow_schema(self.config.columns)
        empty = schema.empty_table().to_batches() or [
            pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
        ]
        try:
            self.open()
            tables = list(self.apply(empty[0]))
        except UserError:
            raise
        except Exception as error:
            raise PlanError(
                "the output's columns cannot be inferred: the function failed on a batch "
                f"without rows: {type(error).__name__}: {error}",
                code="unknown-output",
                hint="declare them, as in schema: name STRING, ...",
            ) from error
        finally:
            self.close()
        if not tables:
            raise PlanError(
                "the output's columns cannot be inferred: the function gave nothing for a batch "
                "without rows",
                code="unknown-output",
                hint="declare them, as in schema: name STRING, ...",
            )
        result: pa.Schema = tables[0].schema
        return result

    def open(self) -> None:
        target = self._load()
        if inspect.isclass(target):
            self._instance = target(**_plain(self.config.options))
            if hasattr(self._instance, "open"):
                self._instance.open()
            self._call = self._instance.transform
        else:
            options = _plain(self.config.options)
            self._call = (lambda rows: target(rows, **options)) if options else target

    def close(self) -> None:
        if self._instance is not None and hasattr(self._instance, "close"):
            self._instance.close()
        self._instance = self._call = None

    def apply(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if self._call is None:
            self.open()
        assert self._call is not None
        if self.config.per == "row":
            rows = [each for row in batch.to_pylist() for each in _rows(self._call(row))]
            assert self.config.columns is not None
            yield from pa.Table.from_pylist(
                rows, schema=arrow_schema(self.config.columns)
            ).to_batches()
            return
        given = self._call(batch)
        for each in given if inspect.isgenerator(given) else [given]:
            yield from _batches(each)

    def _load(self) -> Any:
        """The function or class. Raises PlanError, with the line for a mistake in `code`."""
        if self.config.code is None:
            return self._import()
        filename = f"<{self.context.node}>"
        scope: dict[str, Any] = {"__name__": f"penstock_{self.context.node}"}
        try:
            exec(compile(self.config.code, filename, "exec"), scope)
        except Exception as error:
            line = error.lineno if isinstance(error, SyntaxError) else _line(error, filename)
            raise PlanError(
                f"the code does not run: {type(error).__name__}: {error}"
                + (f" (line {line} of the code)" if line else ""),
                code="invalid-python",
            ) from error
        return scope[self.config.function]

    def _import(self) -> Any:
        module_name, _, name = self.config.function.partition(":")
        base = str(self.context.base)
        if base not in sys.path:
            sys.path.append(base)
        try:
            beside = self.context.base.joinpath(*module_name.split(".")).with_suffix(".py")
            if beside.is_file():
                module = _module_at(str(beside), beside.stat().st_mtime_ns)
            else:
                module = importlib.import_module(module_name)
        except Exception as error:
            raise PlanError(
                f'module "{module_name}" cannot be imported: {type(error).__name__}: {error}',
                code="unknown-function",
                hint="a module is looked for beside the pipeline file and among installed ones",
            ) from error
        try:
            return getattr(module, name)
        except AttributeError:
            raise PlanError(
                f'module "{module_name}" has no "{name}"', code="unknown-function"
            ) from None


@cache
def _module_at(path: str, modified: int) -> ModuleType:
    """The module of one file, whatever other pipelines call theirs."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _defined(tree: ast.Module) -> Iterator[str]:
    """The names that a module's top level defines."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (each.asname or each.name for each in node.names)
        else:
            yield from (n.id for n in ast.walk(node) if isinstance(n, ast.Name))


def _line(error: Exception, filename: str) -> int | None:
    trace = error.__traceback__
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _plain(value: Any) -> Any:
    """Options as a user's code expects them: text that knows its file is ordinary text."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, str) else value


def _rows(given: Any) -> list[Mapping[str, Any]]:
    if given is None:
        return []
    return [given] if isinstance(given, Mapping) else list(given)


def _batches(given: Any) -> Iterator[pa.RecordBatch]:
    if given is None:
        return
    if isinstance(given, pa.RecordBatch):
        yield given
    elif isinstance(given, pa.Table):
        yield from (
            given.to_batches()
            if given.num_rows
            else [
                pa.RecordBatch.from_arrays(
                    [pa.array([], f.type) for f in given.schema], schema=given.schema
                )
            ]
        )
    elif isinstance(given, list):
        yield from pa.Table.from_pylist(given).to_batches()
    else:
        raise TypeError(
            f"a transform gives a RecordBatch, a Table, a list of dicts or None, "
            f"not {type(given).__name__}"
        )
