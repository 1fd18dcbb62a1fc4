"""Functions that SQL can call, resolved from pipeline files and Python files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from penstock.core.errors import PenstockError, PlanError, SpecError
from penstock.core.files.regular_files import check_regular_file
from penstock.core.python_permission import python_not_permitted, python_permitted
from penstock.plan.functions.declared import DeclaredFunction
from penstock.plan.functions.decorated import DecoratedFile
from penstock.plan.functions.json_path_values import JSON_PATH_VALUES
from penstock.plan.functions.model import Function, Parameter
from penstock.spec.function_models import FunctionSpec
from penstock.spec.source_map import Route, find_map
from penstock.spec.validate import Pipeline
from penstock.sql.datafusion.json_path import FIND_VALUES, PATH_FUNCTIONS
from penstock.sql.datafusion.typed_functions import TYPED_FUNCTIONS
from penstock.sql.determinism import deterministic
from penstock.sql.dialect.translate import is_translated
from penstock.sql.functions import AGGREGATES, BUILTINS
from penstock.sql.text.calls import called_functions
from penstock.sql.user_functions import UserFunctions, rows_function

__all__ = ["Function", "builtin_functions", "functions_of", "resolve", "used_functions"]


def resolve(
    pipeline: Pipeline, errors: list[PenstockError], of_files: Iterable[Function] = (),
    of_packages: Iterable[Function] = (),
) -> tuple[Function, ...]:  # fmt: skip
    """Returns the functions of a pipeline that are valid, and appends to `errors`.

    Reads the function files and does not run them. `of_files` are the functions of plugin files. A
    function of a package is replaced by one of the pipeline with its name.
    """
    found: list[Function] = []
    for name, spec in pipeline.spec.functions.items():
        declared = DeclaredFunction(name, spec, pipeline.source_map)
        function = declared.function()
        unknown = (
            find_map(pipeline.source_map, ("functions", name)).keys() - FunctionSpec.model_fields
        )
        if not unknown:
            errors += declared.errors
            found += [function] if function is not None else []
    for index, path in enumerate(pipeline.spec.function_files):
        found += _read_file(pipeline, Path(path), ("function_files", index), errors)
    found += of_files
    known = {function.name.lower() for function in found}
    found += [function for function in of_packages if function.name.lower() not in known]
    functions: dict[str, Function] = {}
    for function in found:
        problem = _name_problem(function, functions)
        if problem is None:
            functions[function.name.lower()] = function
        else:
            errors.append(problem)
    errors += _cycles(functions)
    text = f"{pipeline.spec.transforms} {[function.sql for function in functions.values()]}"
    return (*functions.values(), *builtin_functions(text))


def builtin_functions(text: str) -> Iterator[Function]:
    """Yields the functions of Penstock that a text calls, also those of its translation."""
    lowered = text.lower()
    for typed in TYPED_FUNCTIONS:
        if any(name in lowered for name in (typed.name, *typed.callers)):
            parameters = tuple(Parameter(name, None) for name in typed.parameters)
            yield Function(typed.name, parameters=parameters, sql=typed.sql, cases=typed.cases)
    if any(name in lowered for name in (FIND_VALUES, *PATH_FUNCTIONS)):
        yield JSON_PATH_VALUES


def functions_of(functions: Iterable[Function]) -> UserFunctions:
    """Returns the facts of functions that the analysis of SQL requires."""
    known = {function.name.lower(): function for function in functions}
    collecting = frozenset(name for name, each in known.items() if each.kind == "aggregate")
    aggregates = set(collecting)
    chance = {name for name, function in known.items() if not function.deterministic}
    called = {name: called_functions(function.sql) for name, function in known.items()}
    for name, function in known.items():
        if function.sql and not deterministic(function.sql):
            chance.add(name)
        if not AGGREGATES.isdisjoint(called[name]):
            aggregates.add(name)
    for _ in known:
        aggregates |= {name for name in known if not aggregates.isdisjoint(called[name])}
        chance |= {name for name in known if not chance.isdisjoint(called[name])}
    chance |= {rows_function(name) for name in collecting & chance}
    return UserFunctions(frozenset(known), frozenset(aggregates), collecting, frozenset(chance))


def used_functions(functions: Iterable[Function], texts: Iterable[str]) -> dict[str, Function]:
    """Returns the functions that SQL texts call, also through functions in SQL, by name."""
    known = {function.name.lower(): function for function in functions}
    used: dict[str, Function] = {}
    pending = [name for text in texts for name in called_functions(text)] if known else []
    while pending:
        name = pending.pop()
        if name in known and known[name].name not in used:
            used[known[name].name] = known[name]
            pending += called_functions(known[name].sql)
    return dict(sorted(used.items()))


def _read_file(
    pipeline: Pipeline, path: Path, route: Route, errors: list[PenstockError]
) -> list[Function]:
    source_map = pipeline.source_map
    if source_map.find(route) is None:
        route = route[:-1]
    value = source_map.find(route)
    name = value.written if value is not None and value.written else str(path)
    if not python_permitted():
        errors.append(
            python_not_permitted(f"the file of functions {name}", source_map.value(route))
        )
        return []
    try:
        check_regular_file(path)
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        errors.append(
            SpecError(
                f"cannot read {name}: {error.strerror}",
                code="missing-file",
                where=source_map.value(route),
                hint="name a Python file, relative to the pipeline file",
            )
        )
        return []
    except UnicodeDecodeError:
        errors.append(
            SpecError(f"{name} is not UTF-8", code="not-utf8", where=source_map.value(route))
        )
        return []
    file = DecoratedFile(path.absolute(), name, text)
    functions = file.functions()
    errors += file.errors
    return functions


def _name_problem(function: Function, functions: Mapping[str, Function]) -> PlanError | None:
    name = function.name
    earlier = functions.get(name.lower())
    if earlier is not None:
        return PlanError(
            f'duplicate function "{name}"',
            code="duplicate-name",
            where=function.where,
            hint=f"rename one of them; the first is at {earlier.where}",
        )
    if not name.isidentifier():
        return PlanError(
            f'"{name}" is not a name of a function',
            code="invalid-name",
            where=function.where,
            hint="use letters, digits and _",
        )
    if name.lower() in BUILTINS:
        return PlanError(
            f'"{name}" is a function of Spark',
            code="duplicate-name",
            where=function.where,
            hint="choose another name",
        )
    if is_translated(name) or name.lower() in {
        FIND_VALUES,
        *(each.name for each in TYPED_FUNCTIONS),
    }:
        return PlanError(
            f'"{name}" is a function of SQL scripts',
            code="duplicate-name",
            where=function.where,
            hint="choose another name",
        )
    return None


def _cycles(functions: dict[str, Function]) -> list[PenstockError]:
    """Returns the error of functions in SQL that call each other, and removes these functions."""
    graph = {
        name: [called for called in called_functions(function.sql) if called in functions]
        for name, function in functions.items()
    }
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        cycle = error.args[1]
        first = functions[cycle[0]]
        for name in set(cycle):
            functions[name] = replace(functions[name], sql="NULL")
        path = " -> ".join(functions[name].name for name in cycle)
        problem = PlanError(
            f"the functions call each other: {path}",
            code="cycle",
            where=first.where,
            hint="write a recursive function in Python",
        )
        return [problem]
    return []
