"""The six hops from the text of a pipeline to records in its sinks.

`load` (text to Document), `validate` (to Pipeline), `make_plan` (to Plan), `build` (to DataFrames),
`start`, `supervise`. This is the only module that knows them all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from penstock.core.errors import PenstockError, StateError, raise_all
from penstock.core.log import Log, Silent
from penstock.plan import fingerprint
from penstock.plan.make import make_plan
from penstock.plan.model import Plan
from penstock.spec.validate import read_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from penstock.engine.jvm import Length
    from penstock.observe.metrics import Metrics
    from penstock.plan.hint import Hint
    from penstock.runtime.replay import Replayed
    from penstock.runtime.state import StateDirectory
    from penstock.runtime.supervise import Outcome
    from penstock.runtime.trial import Observed

Paths = str | Path | Sequence[str | Path]
Sets = Mapping[str, str] | Sequence[str]
Until = Literal["auto", "stopped", "caught_up"]
MANY = 8_000_000
"""Records that take minutes."""


def plan(paths: Paths, *, sets: Sets = (), env: Mapping[str, str] | None = None) -> Plan:
    """The static plan of a pipeline's files. Reads nothing but them; raises UserError, Mistakes."""
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    pipeline, mistakes = read_pipeline(given, sets=sets, env=env)
    if pipeline is None:
        raise_all(mistakes)
    assert pipeline is not None
    return make_plan(pipeline, mistakes)


@contextmanager
def session(
    plan: Plan, *, log_file: Path | None = None, length: Length = "seconds"
) -> Iterator[SparkSession]:
    """A Spark session as the plan's runtime settings ask for it; it ends with the block.

    `length` is how long it is going to be busy, as far as that is known.
    """
    from penstock.engine.session import SessionSettings, close, create

    runtime = plan.spec.runtime
    settings = SessionSettings(
        master=runtime.master, conf=_settings(plan), java=runtime.java, heap=runtime.memory,
        log_file=log_file, length=length,
    )  # fmt: skip
    spark = create(settings)
    try:
        yield spark
    finally:
        close()


def _settings(plan: Plan) -> dict[str, str]:
    runtime = plan.spec.runtime
    conf = {name: _setting(value) for name, value in runtime.spark.items()}
    if runtime.packages:
        conf["spark.jars.packages"] = ",".join(runtime.packages)
    if runtime.partitions is not None:
        conf["spark.sql.shuffle.partitions"] = str(runtime.partitions)
    if runtime.state_store == "rocksdb":
        conf["spark.sql.streaming.stateStore.providerClass"] = (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        )
    return conf


def types(plan: Plan, spark: SparkSession) -> dict[str, StructType]:
    """The columns of every node, told by Spark. Infers what is not declared; writes nothing."""
    from penstock.engine.build import Builder
    from penstock.runtime import schemas

    schemas.settle(plan, None)
    return dict(Builder(plan, spark).types())


def hints(plan: Plan, spark: SparkSession) -> dict[str, dict[str, Hint]]:
    """What each query needs of its sources, told by Spark. The plan's columns are settled."""
    from penstock.engine.build import Builder

    builder = Builder(plan, spark)
    return {query.name: builder.hints(query) for query in plan.queries}


@dataclass(frozen=True)
class RunOptions:
    """What `run` is asked for beside the plan."""

    until: Until = "auto"
    fresh: bool = False
    log: Log = field(default_factory=Silent)
    on_start: Callable[[Plan, Metrics], None] | None = None
    on_tick: Callable[[], None] | None = None
    on_note: Callable[[str], None] | None = None
    signals: bool = False


def run(
    paths: Paths | Plan,
    *,
    spark: SparkSession | None = None,
    sets: Sets = (),
    options: RunOptions = RunOptions(),
) -> Outcome:
    """Runs a pipeline until it ends, or for ever where a source has no end.

    With `spark` it runs in that session, whose settings it changes (give it `spark.newSession()`),
    otherwise in one of its own. Raises PenstockError where it cannot begin; what goes wrong later
    is in the outcome.
    """
    from penstock.engine.session import settle
    from penstock.runtime.state import StateDirectory

    planned = paths if isinstance(paths, Plan) else plan(paths, sets=sets)
    state = StateDirectory(planned.state)
    with state.locked():
        _reconcile(planned, state, options)
        if spark is not None:
            settle(spark, _settings(planned))
            return _supervised(planned, spark, state, options)
        with session(planned, log_file=state.log, length=_length(planned, state, options)) as own:
            return _supervised(planned, own, state, options)


def _length(plan: Plan, state: StateDirectory, options: RunOptions) -> Length:
    from penstock.runtime.backlog import backlog

    if not plan.bounded and options.until != "caught_up":
        return "endless"
    return "minutes" if backlog(plan, state) >= MANY else "seconds"


def replay(
    plan: Plan,
    *,
    ids: Collection[str] | None = None,
    force: bool = False,
    spark: SparkSession | None = None,
) -> Replayed:
    """Sends dead letters of the state directory (None: all) once more from where they failed.

    Letters whose way to the sinks leads through a node that remembers rows are refused unless
    `force`. Raises StateError while the pipeline runs, PenstockError where a sink cannot be
    reached; then the letters are all there still.
    """
    from penstock.runtime.diagnose import diagnose
    from penstock.runtime.replay import Replay
    from penstock.runtime.schemas import settle
    from penstock.runtime.state import StateDirectory

    state = StateDirectory(plan.state)
    with state.locked(), ExitStack() as stack:
        settle(plan, state)
        if spark is None:
            spark = stack.enter_context(session(plan, log_file=state.log))
        running = Replay(plan, spark, state)
        try:
            return running.run(ids, force)
        except PenstockError:
            raise
        except Exception as error:
            raise diagnose(plan, running.query, error) from error


def observe(
    plan: Plan,
    nodes: Sequence[str],
    *,
    rows: int = 10,
    timeout: float = 30,
    spark: SparkSession | None = None,
) -> Observed:
    """What flows at nodes of a plan (at a sink: what is written there), without any effect.

    The sources are read from their beginnings and not told so; no sink is touched. Ends when
    each node has given `rows` rows, when the input is caught up, or after `timeout` seconds.
    Raises PenstockError where it cannot begin; what goes wrong later is in what it returns.
    """
    from penstock.runtime import schemas, trial
    from penstock.runtime.state import StateDirectory

    schemas.settle(plan, StateDirectory(plan.state), pin=False)
    with ExitStack() as stack:
        own = spark.newSession() if spark else stack.enter_context(session(plan))
        return trial.observe(plan, nodes, own, rows=rows, timeout=timeout)


def _reconcile(plan: Plan, state: StateDirectory, options: RunOptions) -> None:
    """Makes sure that the state on disk belongs to this plan, or forgets it."""
    note = options.on_note or (lambda text: None)
    if options.fresh:
        forgotten = state.contents()
        state.forget()
        told = ", ".join(forgotten) if forgotten else "nothing"
        note(f"starting over; forgot {told}; what sinks have written stays")
        return
    complete = state.read("complete")
    if complete and complete["windows"]:
        raise StateError(
            f"this pipeline is complete since {complete['at']}: its input ended and its windows "
            "are closed, so nothing can be added",
            code="complete",
            hint="penstock run --fresh starts over",
        )
    before = state.read("plan.json")
    if before is None:
        return
    changes = fingerprint.compare(before, fingerprint.fingerprint(plan))
    refused = [change for change in changes if change.effect == "refused"]
    if refused:
        raise StateError(
            "the pipeline has changed in a way that its state does not survive",
            code="changed-plan",
            detail="\n".join(str(change) for change in changes),
            hint="undo the change, give the changed part another name, or start over with --fresh",
        )
    for change in changes:
        note(f"changed: {change.what}: {change.why}")


def _supervised(
    plan: Plan, spark: SparkSession, state: StateDirectory, options: RunOptions
) -> Outcome:
    from penstock.engine.build import Builder
    from penstock.observe.metrics import Metrics
    from penstock.runtime import schemas
    from penstock.runtime.restart import patiently
    from penstock.runtime.state import now
    from penstock.runtime.stop import StopRequest
    from penstock.runtime.supervise import Supervisor

    began = now()
    stop = StopRequest(state)
    policy = plan.spec.runtime.restart
    for inferred in patiently(lambda: schemas.settle(plan, state), policy, options.log, stop):
        columns = ", ".join(f"{f.name} {f.type}" for f in inferred.columns)
        options.log.info("inferred schema", source=inferred.node, columns=columns)
    Builder(plan, spark).types()
    state.write("plan.json", fingerprint.fingerprint(plan))
    metrics = Metrics()
    until: Literal["stopped", "caught_up", "complete"] = "stopped"
    if options.until == "caught_up":
        until = "caught_up"
    elif options.until == "auto" and plan.bounded:
        until = "complete"
    if options.signals:
        stop.on_signals(options.on_note)
    supervisor = Supervisor(
        plan, spark, state, until=until, metrics=metrics, log=options.log, stop=stop,
        on_tick=options.on_tick,
    )  # fmt: skip
    if options.on_start is not None:
        options.on_start(plan, metrics)
    outcome: Outcome | None = None
    try:
        outcome = supervisor.run()
        return outcome
    finally:
        stop.off_signals()
        with suppress(StateError):
            state.write("status.json", metrics.snapshot())
            state.note_run(began=began, ended=now(), ending=outcome.ending if outcome else "failed")


def _setting(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
