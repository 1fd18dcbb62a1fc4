"""Functions and classes of users: in the code of an option, or in a module."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from penstock.core.errors import OptionError, PlanError
from penstock.core.exits import exception_text, exits_as_exceptions
from penstock.core.path_permission import check_path
from penstock.core.python_permission import require_python
from penstock.core.text import did_you_mean


def check_code(code: str, function: str) -> None:
    """Raises OptionError if code is not valid Python, or does not define a function."""
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        raise OptionError.of(
            "code",
            message=f"the code is not valid Python: {error.msg}",
            code="invalid-python",
            line_and_column=(error.lineno or 1, error.offset or 1),
        ) from error
    names = list(_defined_names(tree))
    if function not in names:
        raise OptionError.of(
            "code",
            message=f'the code does not define "{function}"',
            code="unknown-function",
            hint=did_you_mean(function, names) if names else None,
            line_and_column=(1, 1),
        )


def load_code(code: str, function: str, node: str) -> Any:
    """Returns the function or class that the code of a node defines.

    Raises PlanError with the line of an error in the code.
    """
    require_python("Python code")
    filename = f"<{node}>"
    scope: dict[str, Any] = {"__name__": f"penstock_{node}"}
    try:
        with exits_as_exceptions(KeyboardInterrupt):
            exec(compile(code, filename, "exec"), scope)
    except Exception as error:
        line = error.lineno if isinstance(error, SyntaxError) else _error_line(error, filename)
        raise PlanError(
            f"the code failed: {exception_text(error)}"
            + (f" (line {line} of the code)" if line else ""),
            code="invalid-python",
        ) from error
    return scope[function]


def import_function(function: str, base: Path) -> Any:
    """Returns the function or class `module:name` of an installed module, or of one in `base`.

    Raises PlanError.
    """
    require_python("Python code")
    module_name, _, name = function.partition(":")
    if str(base) not in sys.path:
        sys.path.append(str(base))
    path = module_path(function, base)
    try:
        with exits_as_exceptions(KeyboardInterrupt):
            if path.is_file():
                module = _import_file(str(path), path.stat().st_mtime_ns)
            else:
                module = importlib.import_module(module_name)
    except Exception as error:
        raise PlanError(
            f'module "{module_name}" cannot be imported: {exception_text(error)}',
            code="unknown-function",
            hint="Install the module or place it beside the pipeline file.",
        ) from error
    try:
        return getattr(module, name)
    except AttributeError:
        raise PlanError(
            f'module "{module_name}" has no "{name}"', code="unknown-function"
        ) from None


def module_path(function: str, base: Path) -> Path:
    """Returns the path of the module of `module:name` if it is in a directory.

    Raises SpecError for a path that the server does not permit.
    """
    module_name = function.partition(":")[0]
    path = base.joinpath(*module_name.split(".")).with_suffix(".py")
    check_path(path)
    return path


def modified_time(function: str, base: Path) -> int | None:
    """Returns the time of the last change of the file of `module:name`; None without a file."""
    path = module_path(function, base)
    return path.stat().st_mtime_ns if ":" in function and path.is_file() else None


@cache
def _import_file(path: str, modified: int) -> ModuleType:
    """Imports a file as a module of its own, independent of other modules of the same name."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _defined_names(tree: ast.Module) -> Iterator[str]:
    """Yields the names that the top level of a module defines."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        else:
            yield from (child.id for child in ast.walk(node) if isinstance(child, ast.Name))


def _error_line(error: Exception, filename: str) -> int | None:
    trace = error.__traceback__
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
