"""Functions of a Python file with decorators, read without running the file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from penstock.core.errors import (
    PenstockError,
    PlanError,
    SpecError,
    ValidationErrors,
    flatten_errors,
)
from penstock.core.location import Location
from penstock.plan.functions.annotations import annotated_type, element_type, sql_type
from penstock.plan.functions.decorator_options import (
    check_async_options,
    read_decorator_options,
)
from penstock.plan.functions.dependencies import (
    inline_dependencies,
    missing_imports,
)
from penstock.plan.functions.model import Function, FunctionKind, Parameter
from penstock.plan.functions.python_code import CodeError, Definition, parse
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.requirements import check_requirement
from penstock.spec.dialects.python_functions import MODULES

_KINDS: dict[str, FunctionKind] = {"udf": "scalar", "udaf": "aggregate", "udtf": "table"}
_MODULES = {"penstock", *MODULES}


class DecoratedFile:
    """The decorated functions of one file. Errors are in `errors`."""

    def __init__(self, path: Path, name: str, text: str) -> None:
        self._path, self._name, self._text = path, name, text
        self._lines = text.splitlines()
        self._decorators: dict[str, FunctionKind] = {}
        self.errors: list[PenstockError] = []

    def functions(self) -> list[Function]:
        """Returns the functions; those with errors are left out."""
        try:
            tree, _ = parse(self._text)
        except CodeError as error:
            self.errors.append(_at(error, self._location(error.line, error.column)))
            return []
        self._find_decorators(tree)
        self._check_packages(tree)
        functions = []
        for node in tree.body:
            kind, call = self._decorator(node)
            if kind is not None and isinstance(node, Definition):
                count = len(self.errors)
                try:
                    function = self._function(node, kind, call)
                except (PlanError, ValidationErrors) as error:
                    where = self._node_location(node)
                    self.errors += [_at(inner, where) for inner in flatten_errors(error)]
                else:
                    functions += [function] if len(self.errors) == count else []
        if not functions and not self.errors:
            self.errors.append(
                SpecError(
                    f"{self._name} has no function with a decorator",
                    code="no-functions",
                    where=self._location(1, 1),
                    hint="write from penstock import udf, and @udf above a function",
                )
            )
        return functions

    def _check_packages(self, tree: ast.Module) -> None:
        for name, statement in missing_imports(tree, self._path.parent):
            self.errors.append(_at(missing_module(name), self._node_location(statement)))
        try:
            for requirement in inline_dependencies(self._text):
                check_requirement(requirement)
        except PlanError as error:
            self.errors.append(_at(error, self._location(1, 1)))

    def _find_decorators(self, tree: ast.Module) -> None:
        """Adds the names by which the file knows the decorators."""
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in _MODULES:
                for alias in node.names:
                    if alias.name in _KINDS:
                        self._decorators[alias.asname or alias.name] = _KINDS[alias.name]
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name in _MODULES:
                        known = alias.asname or alias.name
                        names = {f"{known}.{name}": kind for name, kind in _KINDS.items()}
                        self._decorators |= names

    def _decorator(self, node: ast.stmt) -> tuple[FunctionKind | None, ast.Call | None]:
        for decorator in getattr(node, "decorator_list", ()):
            call = decorator if isinstance(decorator, ast.Call) else None
            name = ast.unparse(call.func if call else decorator)
            if name in self._decorators:
                return self._decorators[name], call
        return None, None

    def _function(self, node: Definition, kind: FunctionKind, call: ast.Call | None) -> Function:
        options = read_decorator_options(call, self._node_location) if call is not None else {}
        for requirement in options.get("dependencies", ()):
            check_requirement(str(requirement))
        method = self._method(node, kind)
        is_async = isinstance(method, ast.AsyncFunctionDef)
        if is_async and (kind != "scalar" or options.get("vectorized")):
            raise PlanError("only a scalar function can be async", code="invalid-function")
        check_async_options(options, is_async=is_async)
        return Function(
            name=options.get("name", node.name),
            kind=kind,
            parameters=tuple(self._parameters(method, kind, skip_self=method is not node)),
            returns=self._returns(method, kind, options.get("returns")),
            code=self._text,
            entry=node.name,
            file=self._name,
            base=self._path.parent,
            is_async=is_async,
            vectorized=options.get("vectorized", False),
            deterministic=options.get("deterministic", True),
            concurrency=options.get("concurrency", 10),
            timeout=options.get("timeout"),
            where=self._node_location(node),
        )

    def _method(
        self, node: Definition, kind: FunctionKind
    ) -> ast.FunctionDef | ast.AsyncFunctionDef:
        if not isinstance(node, ast.ClassDef):
            return node
        methods = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "eval"]
        if kind != "table" or not methods:
            raise PlanError(
                f"{node.name} is a class, expected a function",
                code="invalid-function",
                hint="only @udtf accepts a class, which has a method eval",
            )
        return methods[0]

    def _parameters(
        self, method: ast.FunctionDef | ast.AsyncFunctionDef, kind: FunctionKind, *, skip_self: bool
    ) -> Iterator[Parameter]:
        """Yields the parameters whose types are valid. Adds the errors of the others."""
        arguments = method.args
        others = [*arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        if any(other is not None for other in others):
            raise PlanError(
                f"{method.name} has keyword-only or variable parameters",
                code="invalid-function",
                hint="declare each parameter by its name and type",
            )
        for argument in [*arguments.posonlyargs, *arguments.args][1 if skip_self else 0 :]:
            if argument.annotation is None:
                self.errors.append(
                    PlanError(
                        f'the parameter "{argument.arg}" has no type',
                        code="missing-annotation",
                        hint=f"write {argument.arg}: int, or another type",
                        where=self._node_location(argument),
                    )
                )
                continue
            convert = element_type if kind == "aggregate" else annotated_type
            try:
                type_, nullable = convert(argument.annotation)
            except PlanError as error:
                self.errors.append(_at(error, self._node_location(argument.annotation)))
                continue
            yield Parameter(argument.arg, type_, nullable)

    def _returns(
        self,
        method: ast.FunctionDef | ast.AsyncFunctionDef,
        kind: FunctionKind,
        declared: str | None,
    ) -> pa.DataType:
        if declared is not None:
            return (
                pa.struct(list(arrow_schema(declared))) if kind == "table" else sql_type(declared)
            )
        if kind == "table":
            raise PlanError(
                f"the columns of {method.name} are not declared",
                code="missing-annotation",
                hint='write @udtf(returns="word STRING, length INT")',
            )
        if method.returns is None:
            raise PlanError(
                f"{method.name} has no type of its result",
                code="missing-annotation",
                hint=f"write def {method.name}(...) -> int, or another type",
            )
        try:
            return annotated_type(method.returns)[0]
        except PlanError as error:
            raise _at(error, self._node_location(method.returns)) from None

    def _node_location(self, node: ast.AST) -> Location:
        length = 1
        if getattr(node, "end_lineno", None) == getattr(node, "lineno", 1):
            length = getattr(node, "end_col_offset", 1) - getattr(node, "col_offset", 0)
        return self._location(
            getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1, length
        )

    def _location(self, line: int, column: int, length: int = 1) -> Location:
        text = self._lines[line - 1] if 0 < line <= len(self._lines) else ""
        return Location(self._name, line, column, max(length, 1), text)


def missing_module(name: str) -> PlanError:
    """Returns the error of a module that is not installed."""
    package = name.split(".")[0]
    return PlanError(
        f'there is no module "{package}"',
        code="missing-dependency",
        hint=f"run pip install {package}, or place {package}.py beside the file",
    )


def _at(error: PenstockError, where: Location) -> PenstockError:
    if error.where is None:
        error.where = where
    return error
