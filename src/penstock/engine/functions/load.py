"""Python functions in worker processes: compiled from their code, once in each process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from penstock.core.errors import PlanError
from penstock.core.exits import exception_text
from penstock.core.time_limit import NoResult, call_within
from penstock.plan.functions.model import Function
from penstock.plan.functions.python_code import as_module, find_definition, parse
from penstock.spec.dialects.python_functions import MODULES


@cache
def load_function(function: Function) -> Callable[..., Any]:
    """Returns the callable of a function. Raises PlanError if its code cannot run."""
    base = str(function.base)
    if function.base != Path() and base not in sys.path:
        sys.path.append(base)
    _provide_decorators()
    tree, _ = parse(function.code)
    if not function.entry:
        names = [parameter.name for parameter in function.parameters]
        tree = as_module(tree, function.name, names, function.is_async)
    scope: dict[str, Any] = {"__name__": f"penstock_{function.name}"}
    try:
        code = compile(tree, function.file, "exec")
        call_within(function.time_limit, lambda: exec(code, scope))
    except Exception as error:
        raise PlanError(
            f'function "{function.name}" cannot be loaded: {describe(error, function)}',
            code="invalid-python",
            hint="install the required packages on all machines",
        ) from error
    entry = find_definition(tree, function.entry or function.name)
    assert entry is not None
    target: Callable[..., Any] = scope[entry.name]
    return target().eval if isinstance(target, type) else target


def describe(error: BaseException, function: Function) -> str:
    """Returns the class and the message of an exception, with the line of the function's code.

    The end of a call at its time limit has a message only.
    """
    if isinstance(error, NoResult):
        return error.message
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == function.file:
            line = trace.tb_lineno
        trace = trace.tb_next
    message = exception_text(error)
    if line is None:
        return message
    return f"{message} ({Path(function.file).name}, line {line + function.first_line - 1})"


def _provide_decorators() -> None:
    """Provides the modules of dialects, whose decorators are those of Penstock."""
    for name in MODULES:
        if name not in sys.modules:
            from penstock import decorators

            module: Any = ModuleType(name)
            module.udf, module.udaf, module.udtf = decorators.udf, decorators.udaf, decorators.udtf
            sys.modules[name] = module
