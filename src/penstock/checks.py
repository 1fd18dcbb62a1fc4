"""What is wrong with a pipeline, found without running it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from penstock import app
from penstock.core.errors import PenstockError, RecordError, each_of
from penstock.core.text import plural
from penstock.plan.explain import Column, explain
from penstock.plan.model import Plan

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

Level = Literal["static", "plan", "connect", "sample"]
LEVELS: tuple[Level, ...] = get_args(Level)


@dataclass(frozen=True)
class CheckedNode:
    """`columns` is None where they are not known, `rows` the sampled ones that came to a sink."""

    kind: str
    type: str
    columns: tuple[Column, ...] | None = None
    rows: int | None = None


@dataclass
class Checked:
    """What was found. `plan` is None where the files are too wrong to make one."""

    level: Level
    plan: Plan | None = None
    errors: list[PenstockError] = field(default_factory=list)
    warnings: list[PenstockError] = field(default_factory=list)
    nodes: dict[str, CheckedNode] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """Of the gravest error."""
        return max((error.conduct.exit_code for error in self.errors), default=0)


def check(
    paths: app.Paths,
    *,
    sets: app.Sets = (),
    level: Level = "plan",
    rows: int = 10,
    timeout: float = 30.0,
) -> Checked:
    """Checks a pipeline; each level includes those before it. Writes and consumes nothing.

    `static`: the files alone. `plan`: the columns of every node, told by Spark. `connect`: every
    outside system answers within `timeout` seconds. `sample`: so many rows of each source go
    through the plan, but not into its sinks. Mistakes are in the result, not raised.
    """
    found = Checked(level)
    with _kept(found):
        found.plan = app.plan(paths, sets=sets)
    if found.plan is None:
        return found
    found.warnings += found.plan.warnings
    _tell(found, {})
    depth = LEVELS.index(level)
    if depth >= LEVELS.index("connect"):
        _connect(found, found.plan, timeout)
    if depth >= LEVELS.index("plan"):
        with _kept(found), app.session(found.plan) as spark:
            _columns(found, found.plan, spark)
            if level == "sample" and not found.errors:
                _sample(found, found.plan, spark, rows, timeout)
    return found


class _kept:
    """Keeps what is raised inside, each mistake once."""

    def __init__(self, found: Checked) -> None:
        self.found = found

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if not isinstance(error, PenstockError):
            return False
        known = {str(each) for each in self.found.errors}
        self.found.errors += [each for each in each_of(error) if str(each) not in known]
        return True


def _connect(found: Checked, plan: Plan, timeout: float) -> None:
    from penstock.runtime.reach import unreachable

    found.errors += unreachable(plan, timeout=timeout)


def _columns(found: Checked, plan: Plan, spark: SparkSession) -> None:
    from penstock.engine.columns import to_arrow

    types = app.types(plan, spark)
    _tell(found, {name: to_arrow(columns) for name, columns in types.items()})


def _sample(found: Checked, plan: Plan, spark: SparkSession, rows: int, timeout: float) -> None:
    sinks = [node.name for node in plan.of("sink")]
    seen = app.observe(plan, sinks, rows=rows, timeout=timeout, spark=spark)
    if seen.error is not None:
        raise seen.error
    for name, table in seen.tables.items():
        node = found.nodes[name]
        found.nodes[name] = CheckedNode(node.kind, node.type, node.columns, table.num_rows)
    letters = seen.dead_letters.select(["node", "code", "message"]).to_pylist()
    first = {(each["node"], each["code"]): each["message"] for each in reversed(letters)}
    for (name, code), count in Counter((each["node"], each["code"]) for each in letters).items():
        records = plural(count, "record")
        found.warnings.append(
            RecordError(
                f"{plan.nodes[name].label} fails on {records} of the sample: {first[name, code]}",
                code=code,
                where=plan.nodes[name].where,
            )
        )


def _tell(found: Checked, columns: dict[str, pa.Schema]) -> None:
    assert found.plan is not None
    for node in explain(found.plan, columns).nodes:
        found.nodes[node.name] = CheckedNode(node.kind, node.type, node.columns)
