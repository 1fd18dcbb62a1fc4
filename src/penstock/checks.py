"""Checks of a pipeline without a run: files, columns, connections, a sample of rows."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from penstock import app
from penstock.core.error_codec import encode
from penstock.core.errors import (
    PenstockError,
    RecordError,
    ValidationErrors,
    flatten_errors,
    raise_all,
)
from penstock.core.text import plural
from penstock.plan.explain import Column, explain
from penstock.plan.make import PartialPlan
from penstock.plan.model import Plan
from penstock.plan.node_changes import Change
from penstock.plan.plugins import broken_plugins
from penstock.runtime.state.pipeline import open_state
from penstock.spec.parsed import MissingParts, Overrides
from penstock.spec.source_map import find_map

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

Level = Literal["static", "plan", "connect", "sample"]
_UNKNOWN_FUNCTION = re.compile(r'there is no function "(.*)"')
LEVELS: tuple[Level, ...] = get_args(Level)


@dataclass(frozen=True)
class CheckedNode:
    """A node of a checked pipeline.

    `columns` is None for unknown columns. `rows` is the number of sampled rows at a sink.
    """

    kind: str
    type: str
    columns: tuple[Column, ...] | None = None
    rows: int | None = None


@dataclass
class CheckResult:
    """The result of a check. `plan` is None if the files are invalid.

    `partial` is the valid part of the plan; None without one. `changes` are those since the last
    run; a change that the state does not support is an error.
    """

    level: Level
    plan: Plan | None = None
    errors: list[PenstockError] = field(default_factory=list)
    warnings: list[PenstockError] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    nodes: dict[str, CheckedNode] = field(default_factory=dict)
    partial: PartialPlan | None = None

    @property
    def exit_code(self) -> int:
        """The highest exit code of the errors."""
        return max((error.policy.exit_code for error in self.errors), default=0)


def check(
    paths: app.Paths,
    *,
    overrides: Overrides = (),
    level: Level = "plan",
    rows: int = 10,
    timeout: float = 30.0,
) -> CheckResult:
    """Checks a pipeline and returns all errors by file and line. Writes and consumes nothing.

    Each level includes the previous ones. `static` checks the files only. `plan` infers the
    columns of every node with Spark. `connect` connects to every external system within `timeout`
    seconds, and to the object store of the state. Both check the nodes that do not depend on an
    error in the files. `sample` processes `rows` rows of each source, without access to sinks.
    """
    result = _check(paths, overrides, level, rows, timeout)
    result.errors = list(ValidationErrors(result.errors).errors)
    return result


def _check(
    paths: app.Paths, overrides: Overrides, level: Level, rows: int, timeout: float
) -> CheckResult:
    result = CheckResult(level)
    partial, errors = app.partial_plan(paths, overrides=overrides)
    result.partial = partial
    with _Collector(result):
        raise_all(errors)
    if partial is None:
        return result
    plan = partial.plan
    result.warnings += [plugin.error() for plugin in broken_plugins()]
    if not errors:
        result.plan = plan
        result.warnings += plan.warnings
        with _Collector(result):
            state = open_state(plan)
            if LEVELS.index(level) >= LEVELS.index("connect"):
                state.refresh()
            result.changes = app.changes(plan)
        _describe_nodes(result, plan, {})
    depth = LEVELS.index(level)
    if depth >= LEVELS.index("connect"):
        _connect(result, partial, timeout)
    if depth >= LEVELS.index("plan") and _has_plan(partial):
        with _Collector(result), app.session(plan) as spark:
            if not partial.errors:
                plan = app.with_primary_keys(plan)
                result.plan = plan
            missing = _missing_functions(partial)
            with _Collector(result, missing):
                _columns(result, plan, spark)
            with _Collector(result, missing):
                _texts(partial, spark)
            if level == "sample" and not result.errors:
                _sample(result, plan, spark, rows, timeout)
    if result.changes:
        from penstock.runtime.state.compatibility import check_compatible

        with _Collector(result):
            check_compatible(result.changes)
    return result


def _has_plan(partial: PartialPlan) -> bool:
    """Returns whether Spark can find further errors: in the nodes downstream of sources."""
    runtime_is_wrong = ("runtime",) in partial.plan.pipeline.damaged
    nodes = (*partial.plan.nodes.values(), *partial.downstream_of_errors)
    derived = any(node.kind != "source" for node in nodes)
    return not partial.errors or (derived and not runtime_is_wrong)


class _Collector:
    """A collector of the errors raised in a block, without duplicates.

    A function that may be in one of the `missing` parts of the files is no error.
    """

    def __init__(self, result: CheckResult, missing: MissingParts | None = None) -> None:
        self.result, self.missing = result, missing

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if not isinstance(error, PenstockError):
            return False
        known = {encode(error) for error in self.result.errors}
        self.result.errors += [
            inner
            for inner in flatten_errors(error)
            if encode(inner) not in known and not self._may_be_missing(inner)
        ]
        return True

    def _may_be_missing(self, error: PenstockError) -> bool:
        function = _UNKNOWN_FUNCTION.search(error.message)
        return bool(self.missing and function and self.missing.may_have(function[1]))


def _connect(result: CheckResult, partial: PartialPlan, timeout: float) -> None:
    from penstock.runtime.connectivity import check_connectivity

    plan = partial.plan
    nodes = {
        name: node for name, node in plan.nodes.items() if name not in partial.placeholder_sources
    }
    plan = replace(plan, nodes=nodes)
    result.errors += check_connectivity(plan, timeout=timeout)


def _columns(result: CheckResult, plan: Plan, spark: SparkSession) -> None:
    from penstock.engine.catalyst.columns import to_arrow

    types = app.types(plan, spark)
    if result.plan is not None:
        arrow_types = {name: to_arrow(columns) for name, columns in types.items()}
        _describe_nodes(result, plan, arrow_types)
        result.changes = app.changes(plan, types, spark)
    app.pushdowns(plan, spark)  # finds the errors of constants


def _texts(partial: PartialPlan, spark: SparkSession) -> None:
    from penstock.engine.analysis.syntax import text_errors
    from penstock.engine.build import Builder

    Builder(partial.plan, spark).register_functions(spark)
    raise_all(text_errors(partial.plan, partial.downstream_of_errors, spark))


def _missing_functions(partial: PartialPlan) -> MissingParts:
    """Returns the parts that may have the functions that the plan lacks.

    A function with an error is in no plan. The names in a file of functions with an error are not
    known.
    """
    pipeline = partial.plan.pipeline
    source_map = pipeline.source_map
    count = len(pipeline.spec.function_files)
    files = [source_map.value(("function_files", *index)) for index in ((), *zip(range(count)))]
    others = any(
        error.where in files or error.where.file.endswith(".py")
        for error in partial.errors
        if error.where is not None
    )
    names = frozenset(find_map(source_map, ("functions",)))
    return MissingParts(names, others) | pipeline.missing


def _sample(
    result: CheckResult, plan: Plan, spark: SparkSession, rows: int, timeout: float
) -> None:
    sinks = [node.name for node in plan.of("sink")]
    preview = app.preview(plan, sinks, rows=rows, timeout=timeout, spark=spark)
    if preview.error is not None:
        raise preview.error
    for name, table in preview.tables.items():
        node = result.nodes[name]
        result.nodes[name] = CheckedNode(node.kind, node.type, node.columns, table.num_rows)
    dead_letters = preview.dead_letters.select(["node", "code", "message"]).to_pylist()
    first = {(row["node"], row["code"]): row["message"] for row in reversed(dead_letters)}
    for (name, code), count in Counter((row["node"], row["code"]) for row in dead_letters).items():
        records = plural(count, "record")
        result.warnings.append(
            RecordError(
                f"{plan.nodes[name].label} fails on {records} of the sample: {first[name, code]}",
                code=code,
                where=plan.nodes[name].where,
            )
        )


def _describe_nodes(result: CheckResult, plan: Plan, columns: dict[str, pa.Schema]) -> None:
    for node in explain(plan, columns).nodes:
        result.nodes[node.name] = CheckedNode(node.kind, node.type, node.columns)
