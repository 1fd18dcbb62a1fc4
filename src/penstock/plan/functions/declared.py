"""Functions of a pipeline file, from their models."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pyarrow as pa

from penstock.core.errors import (
    OptionError,
    PenstockError,
    PlanError,
    ValidationErrors,
    flatten_errors,
)
from penstock.core.python_permission import python_not_permitted, python_permitted
from penstock.core.text import line_and_column, plural
from penstock.plan.functions.annotations import annotated_type, element_type, sql_type
from penstock.plan.functions.decorated import missing_module
from penstock.plan.functions.decorator_options import ASYNC_OPTIONS
from penstock.plan.functions.dependencies import missing_imports
from penstock.plan.functions.model import Function, Parameter
from penstock.plan.functions.python_code import Code, CodeError, read_code
from penstock.plan.functions.sql_code import check_expression
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.requirements import check_requirement
from penstock.spec.function_models import FunctionSpec
from penstock.spec.source_map import Route, SourceMap, locate_error
from penstock.sql.dialect.translate import translate
from penstock.sql.text.edits import DialectError


class DeclaredFunction:
    """A function of a pipeline file. Errors are in `errors`."""

    def __init__(self, name: str, spec: FunctionSpec, source_map: SourceMap) -> None:
        self._name, self._spec, self._map = name, spec, source_map
        self._route: Route = ("functions", name)
        self.errors: list[PenstockError] = []

    def function(self) -> Function | None:
        """Returns the function, or None after an error."""
        spec = self._spec
        if (spec.code is None) == (spec.sql is None):
            self._add(PlanError("expected either code or sql", code="missing-option"), ())
            return None
        if spec.code is not None and not python_permitted():
            self._add(python_not_permitted("Python code"), ("code",))
            return None
        for index, requirement in enumerate(spec.dependencies):
            self._try(lambda text=requirement: check_requirement(text), ("dependencies", index))
        function = self._sql_function() if spec.sql is not None else self._python_function()
        return None if self.errors else function

    def _sql_function(self) -> Function:
        spec = self._spec
        assert spec.sql is not None
        options = ("kind", "vectorized", "skip_nulls", *ASYNC_OPTIONS, "timeout", "dependencies")
        for option in options:
            if option in spec.model_fields_set:
                problem = f"{option} is an option of functions in Python"
                self._add(PlanError(problem, code="unused-option"), (option,))
        self._try(lambda: check_expression(spec.sql or "", [*spec.args]), ("sql",))
        types = {name: self._type(text, ("args", name)) for name, text in spec.args.items()}
        return Function(
            self._name,
            parameters=tuple(Parameter(name, type_) for name, type_ in types.items()),
            returns=self._type(spec.returns, ("returns",)),
            sql=self._translated(spec.sql),
            deterministic=spec.deterministic,
            where=self._map.key(self._route),
        )

    def _translated(self, expression: str) -> str:
        """Returns an expression in Spark SQL."""
        try:
            return translate(expression).text
        except DialectError as error:
            position = line_and_column(expression, error.start)
            problem = PlanError(error.message, code=error.code, hint=error.hint)
            self._add(problem, ("sql",), position)
            return expression

    def _python_function(self) -> Function | None:
        spec = self._spec
        assert spec.code is not None
        try:
            code = read_code(spec.code, self._name)
        except CodeError as error:
            self._add(error, ("code",), (error.line, error.column))
            return None
        for name, statement in missing_imports(code.tree, self._map.base(self._route)):
            self._add(missing_module(name), ("code",), _position(statement, code))
        parameters = tuple(self._parameters(code))
        returns = self._returns(code)
        if code.is_async and (spec.vectorized or spec.kind != "scalar"):
            self._add(PlanError("only a scalar function can be async", code="invalid-function"), ())
        if not code.is_async:
            for option in ASYNC_OPTIONS:
                if option in spec.model_fields_set:
                    problem = f"{option} is an option of async functions"
                    hint = "write async def, or await in the body"
                    self._add(PlanError(problem, code="unused-option", hint=hint), (option,))
        first = self._map.inside((*self._route, "code"), 1, 1)
        return Function(
            self._name, spec.kind, parameters, returns, str(spec.code),
            code.entry.name if code.entry is not None else "", "", first.file, first.line,
            self._map.base(self._route), code.is_async, spec.vectorized, spec.deterministic,
            spec.concurrency, spec.timeout, self._map.key(self._route),
        )  # fmt: skip

    def _parameters(self, code: Code) -> Iterator[Parameter]:
        """Yields the parameters: those of `args`, or else those of the code."""
        spec = self._spec
        if spec.args or not isinstance(code.entry, ast.FunctionDef | ast.AsyncFunctionDef):
            for name, text in spec.args.items():
                type_ = self._type(text, ("args", name))
                if text is None:
                    problem = PlanError(f'the parameter "{name}" has no type', code="missing-type")
                    self._add(problem, ("args", name))
                if type_ is not None:
                    yield Parameter(name, type_, not spec.skip_nulls)
            self._check_count(code)
            return
        convert = element_type if spec.kind == "aggregate" else annotated_type
        for argument in code.entry.args.args:
            place = _position(argument, code)
            if argument.annotation is None:
                hint = f"write {argument.arg}: int, or args: {{{argument.arg}: BIGINT}}"
                problem = PlanError(
                    f'the parameter "{argument.arg}" has no type',
                    code="missing-annotation",
                    hint=hint,
                )
                self._add(problem, ("code",), place)
                continue
            try:
                type_, nullable = convert(argument.annotation)
            except PlanError as error:
                self._add(error, ("code",), _position(argument.annotation, code))
                continue
            yield Parameter(argument.arg, type_, nullable and not spec.skip_nulls)

    def _check_count(self, code: Code) -> None:
        entry = code.entry
        if not isinstance(entry, ast.FunctionDef | ast.AsyncFunctionDef) or entry.args.vararg:
            return
        found, required = len(entry.args.args), len(entry.args.args) - len(entry.args.defaults)
        if not required <= len(self._spec.args) <= found:
            self._add(
                PlanError(
                    f"the code has {plural(found, 'parameter')}, expected {len(self._spec.args)}",
                    code="wrong-arguments",
                ),
                ("code",),
                _position(entry, code),
            )

    def _returns(self, code: Code) -> pa.DataType | None:
        spec, entry = self._spec, code.entry
        if spec.returns is not None:
            if spec.kind == "table":
                try:
                    return pa.struct(list(arrow_schema(spec.returns)))
                except (PlanError, ValidationErrors) as error:
                    for inner in flatten_errors(error):
                        self._add(inner, ("returns",))
                    return None
            return self._type(spec.returns, ("returns",))
        annotation = getattr(entry, "returns", None)
        if annotation is None or spec.kind == "table":
            columns = "name STRING, ..." if spec.kind == "table" else "TYPE"
            hint = f"add returns: {columns}, or RETURNS in a script"
            problem = "the type of the result is not declared"
            self._add(PlanError(problem, code="missing-annotation", hint=hint), ())
            return None
        try:
            return annotated_type(annotation)[0]
        except PlanError as error:
            self._add(error, ("code",), _position(annotation, code))
            return None

    def _type(self, text: str | None, route: Route) -> pa.DataType | None:
        if text is None:
            return None
        try:
            return sql_type(text)
        except PlanError as error:
            self._add(error, route)
            return None

    def _try(self, call: object, route: Route) -> None:
        assert callable(call)
        try:
            call()
        except CodeError as error:
            self._add(error, route, (error.line, error.column))
        except PlanError as error:
            self._add(error, route)

    def _add(
        self, error: PenstockError, route: Route, position: tuple[int, int] | None = None
    ) -> None:
        path = (*self._route, *route)
        while len(path) > len(self._route) and self._map.find(path) is None:
            path = path[:-1]
        if position is None and isinstance(error, OptionError):
            where = locate_error(self._map, error, path)
        elif position is not None:
            where = self._map.inside(path, *position)
        else:
            where = self._map.value(path) if route else self._map.key(path)
        self.errors.append(
            PlanError(
                f'function "{self._name}": {error.message}',
                code=error.code,
                hint=error.hint,
                where=where,
            )
        )


def _position(node: ast.AST, code: Code) -> tuple[int, int]:
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    return line, column + code.indent + 1
