"""The steps from the files of a pipeline to records in its sinks.

The functions here take `load` (files to ParsedPipeline), `validate` (to Pipeline) and `make_plan`
(to Plan). `Run` takes the others: `Builder` (to DataFrames), `start` (to queries), `Supervisor`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.core.errors import PenstockError, flatten_errors, raise_all
from penstock.plan.make import PartialPlan, make_plan
from penstock.plan.model import Plan
from penstock.runtime.run_options import DEFAULT_OPTIONS, RunOptions
from penstock.spec.load import load
from penstock.spec.parsed import Overrides, ParsedPipeline
from penstock.spec.script.front_end import read_script
from penstock.spec.validate import validate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from penstock.engine.spark_session.memory import Resources
    from penstock.plan.node_changes import Change
    from penstock.plan.pushdown import Pushdown
    from penstock.runtime.handle import RunHandle
    from penstock.runtime.outcome import Outcome
    from penstock.runtime.preview import OnRows, Preview

__all__ = [
    "Paths", "RunOptions", "changes", "partial_plan", "plan", "preview", "pushdowns",
    "resources", "run", "script_plan", "session", "start", "types", "with_primary_keys",
]  # fmt: skip

Paths = str | Path | Sequence[str | Path]


def plan(paths: Paths, *, overrides: Overrides = (), env: Mapping[str, str] | None = None) -> Plan:
    """Returns the static plan of pipeline files. Raises UserError with all errors in the files."""
    partial, errors = partial_plan(paths, overrides=overrides, env=env)
    raise_all(errors)
    assert partial is not None
    return partial.plan


def partial_plan(
    paths: Paths, *, overrides: Overrides = (), env: Mapping[str, str] | None = None
) -> tuple[PartialPlan | None, Sequence[PenstockError]]:
    """Returns the plan of the valid part of pipeline files, and all errors in the files.

    Without a valid part the plan is None.
    """
    files = [paths] if isinstance(paths, str | Path) else list(paths)
    return _plan_of(load(files, overrides=overrides, env=env))


def script_plan(
    text: str, *, name: str = "<sql>", overrides: Overrides = ()
) -> tuple[PartialPlan | None, Sequence[PenstockError]]:
    """Returns the plan of the valid part of a SQL script, and all errors in the script.

    Paths are relative to the working directory. `name` is the name of the file in messages.
    """
    return _plan_of(read_script(text, name, overrides=overrides))


def _plan_of(parsed: ParsedPipeline) -> tuple[PartialPlan | None, Sequence[PenstockError]]:
    pipeline, errors = validate(parsed)
    partial = make_plan(pipeline, errors) if pipeline is not None else None
    found = partial.errors if partial is not None else errors
    missing = parsed.missing
    if missing is None or not missing.options:
        return partial, found
    read = [inner for error in parsed.errors for inner in flatten_errors(error)]
    others = [inner for error in found for inner in flatten_errors(error) if inner not in read]
    return None, [*read, *(error for error in others if not missing.may_correct(error))]


def session(plan: Plan) -> AbstractContextManager[SparkSession]:
    """Returns a Spark session with the plan's runtime settings, which ends with the context."""
    from penstock.runtime import session as sessions

    return sessions.session(plan)


def resources(plan: Plan) -> Resources:
    """Returns the heap and the state store of a run that starts now on this machine."""
    from penstock.runtime import session as sessions

    return sessions.resources(plan)


def with_primary_keys(plan: Plan) -> Plan:
    """Returns the plan with the primary keys that the systems of its sources declare.

    Connects to a system whose key no run has stored. Writes nothing. Raises UserError if the plan
    is invalid with these keys, and Transient or Permanent if a system cannot be reached.
    """
    from penstock.runtime.state.pipeline import open_state
    from penstock.runtime.state.primary_keys import resolve_primary_keys

    unknown = any(node.unknown_key for node in plan.of("source"))
    return resolve_primary_keys(plan, open_state(plan)) if unknown else plan


def types(plan: Plan, spark: SparkSession) -> dict[str, StructType]:
    """Returns the Spark schema of every node. Infers undeclared schemas; writes nothing.

    Raises UserError, or ValidationErrors with the errors of all nodes whose inputs are valid.
    """
    from penstock.engine.build import Builder
    from penstock.engine.checks.column_types import column_types
    from penstock.runtime.state import schemas

    errors: dict[str, PenstockError] = {}
    schemas.resolve_schemas(plan, None, errors=errors)
    return column_types(Builder(plan, spark), errors, unread=True)


def changes(
    plan: Plan, types: Mapping[str, StructType] | None = None, spark: SparkSession | None = None
) -> list[Change]:
    """Returns the changes of a plan since its last run, with their effects on the state.

    `types` are those of `types`, in this session. Without them only the plans are compared, if the
    columns of all sources are declared or pinned. Writes nothing.
    """
    if not (plan.state / "plan.json").exists():
        return []
    from penstock.runtime.state.compatibility import find_all_changes

    if types is None or spark is None:
        return find_all_changes(plan)
    from penstock.engine.build import Builder

    columns = {node.name: types[node.inputs[0]].names for node in plan.of("sink")}
    return find_all_changes(plan, columns, Builder(plan, spark))


def pushdowns(plan: Plan, spark: SparkSession) -> dict[str, dict[str, Pushdown]]:
    """Returns the columns and filters that each query pushes down to its sources.

    The schemas of the plan must be resolved. Raises SqlError at a constant whose value is an error,
    such as `1 / 0`.
    """
    from penstock.engine.build import Builder

    builder = Builder(plan, spark)
    return {query.name: builder.pushdowns(query) for query in plan.queries}


def run(
    paths: Paths | Plan,
    *,
    spark: SparkSession | None = None,
    overrides: Overrides = (),
    options: RunOptions = DEFAULT_OPTIONS,
) -> Outcome:
    """Runs a pipeline to its end, or until it is stopped if a source is unbounded.

    With `spark` the run uses that session and changes its settings (pass `spark.newSession()`),
    otherwise a session of its own. Raises PenstockError if the run cannot start; later errors are
    in the outcome.
    """
    from penstock.runtime.run import Run

    handle = _handle(paths, overrides, options)
    Run(handle, options).run(spark)
    outcome = handle.wait()
    assert outcome is not None
    return outcome


def start(
    paths: Paths | Plan,
    *,
    spark: SparkSession | None = None,
    overrides: Overrides = (),
    options: RunOptions = DEFAULT_OPTIONS,
) -> RunHandle:
    """Starts a run in the background, as `run` does, and returns its handle.

    Raises UserError for errors in the files. `RunHandle.wait` raises all later errors.
    """
    from penstock.runtime.run import Run

    handle = _handle(paths, overrides, options)
    Run(handle, options).start(spark)
    return handle


def _handle(paths: Paths | Plan, overrides: Overrides, options: RunOptions) -> RunHandle:
    from penstock.runtime.handle import RunHandle
    from penstock.runtime.run import check_options

    planned = paths if isinstance(paths, Plan) else plan(paths, overrides=overrides)
    check_options(planned, options)
    return RunHandle(planned, options.log, options.id)


def preview(
    plan: Plan,
    nodes: Sequence[str],
    *,
    rows: int = 10,
    timeout: float = 30,
    spark: SparkSession | None = None,
    on_rows: OnRows | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Preview:
    """Returns rows of nodes of a plan; for a sink, the rows of its input.

    `on_rows` receives the name of a node and its next rows, as they arrive. The preview ends early
    when `cancelled` returns True.

    Reads the sources from their beginnings and acknowledges nothing. Writes to no sink. Ends when
    each node has `rows` rows, when the input is caught up, or after `timeout` seconds. Raises
    PenstockError if the preview cannot start; later errors are in the result.
    """
    from penstock.runtime import preview as previews
    from penstock.runtime.session import new_session
    from penstock.runtime.state import schemas
    from penstock.runtime.state.pipeline import open_state

    plan = with_primary_keys(plan)
    schemas.resolve_schemas(plan, open_state(plan), pin=False)
    with ExitStack() as stack:
        new = new_session(spark, plan) if spark else stack.enter_context(session(plan))
        return previews.preview(
            plan, nodes, new, rows=rows, timeout=timeout, on_rows=on_rows, cancelled=cancelled
        )
