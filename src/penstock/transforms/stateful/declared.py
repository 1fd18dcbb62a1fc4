"""The state that the decorator `stateful` declares, read without running the code."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from penstock.core.errors import PlanError
from penstock.transforms.python_code import module_path
from penstock.transforms.python_config import PythonConfig, StateOptions

_NAMES = {"stateful", "penstock.stateful"}


def with_declared_state(config: PythonConfig, base: Path) -> PythonConfig:
    """Returns options with the state of the decorator of their function. Raises PlanError."""
    if config.state is not None:
        return config
    name, text = config.function.rpartition(":")[2], config.code
    if text is None:
        path = module_path(config.function, base)
        text = path.read_text("utf-8", "replace") if path.is_file() else ""
    options = _decorator_options(text, name)
    if options is None:
        return config
    try:
        state = StateOptions.model_validate(options)
    except ValidationError as error:
        problem = error.errors()[0]
        option = ".".join(map(str, problem["loc"]))
        raise PlanError(
            f"the decorator of {name} has a wrong option {option}: {problem['msg']}",
            code="invalid-option", hint='write @stateful(key="user", time="at", ttl="1 hour")',
        ) from None  # fmt: skip
    return config.model_copy(update={"state": state})


def _decorator_options(text: str, name: str) -> dict[str, Any] | None:
    """Returns the options of the decorator of a function or class; None without one."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    for node in tree.body:
        if getattr(node, "name", None) != name:
            continue
        for decorator in getattr(node, "decorator_list", ()):
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) in _NAMES:
                return _literals(decorator, name)
    return None


def _literals(call: ast.Call, name: str) -> dict[str, Any]:
    try:
        return {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except ValueError:
        raise PlanError(
            f"the options of the decorator of {name} are not literals", code="invalid-option",
            hint='write @stateful(key="user", time="at", ttl="1 hour")',
        ) from None  # fmt: skip
