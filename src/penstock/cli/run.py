"""`penstock run`: runs a pipeline."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, validators

from penstock.cli.options import (
    Dialect,
    Files,
    FunctionFiles,
    Overrides,
    Settings,
    Strict,
    with_functions,
)
from penstock.core.deferred_pandas import defer_pandas
from penstock.core.errors import OutputClosed, PenstockError, PlanError, UserError
from penstock.core.run_id import given_run_id
from penstock.core.text import plural

if TYPE_CHECKING:
    from penstock.cli.live_view import LiveView
    from penstock.cli.log_view import LogView
    from penstock.observe.metrics import Metrics
    from penstock.plan.model import Plan

Fresh = Annotated[bool, Parameter(help="Reset the state: offsets, windows and dead letters.")]
UntilCaughtUp = Annotated[
    bool,
    Parameter(help="Stop at the latest offsets of the start; windows stay open."),
]
Master = Annotated[
    str | None,
    Parameter(metavar="URL", help="The Spark master, such as local[4] or spark://host:7077."),
]
LogFormat = Annotated[
    Literal["console", "json"] | None,
    Parameter(name="--log", help="Log to standard error instead of showing the live view."),
]
LogFile = Annotated[
    Path | None,
    Parameter(metavar="FILE", help="Log to a file instead of standard error; see --log."),
]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error"], Parameter(help="The minimum level of log lines.")
]
Quiet = Annotated[
    bool,
    Parameter(help="Show only errors, the number of dead letters and the rows of print sinks."),
]
FailOnDeadLetters = Annotated[
    int | None,
    Parameter(
        name="--fail-on-dead-letters",
        metavar="[=N]",
        requires_equals=True,
        validator=validators.Number(gte=1),
        help="Exit with 1 if the run has at least N dead letters; 1 by default.",
    ),
]

Listen = Annotated[
    str | None,
    Parameter(
        metavar="ADDRESS",
        help="Serve /metrics for Prometheus, /health and /ready at HOST:PORT during the run. "
        "PORT alone is reachable from this machine only.",
    ),
]
OtlpEndpoint = Annotated[
    str | None,
    Parameter(
        metavar="URL",
        help="Export metrics, traces and logs by OTLP over HTTP, as to http://localhost:4318.",
    ),
]
Backfill = Annotated[
    str | None,
    Parameter(
        metavar="SINK",
        help="Write the rows from before the start of a new sink, then end. A sink that overwrites "
        "rows is written again from the beginning.",
    ),
]


def run(
    files: Files,
    /,
    *,
    overrides: Overrides = (),
    functions: FunctionFiles = (),
    dialect: Dialect = None,
    strict: Strict = False,
    settings: Settings = None,
    fresh: Fresh = False,
    until_caught_up: UntilCaughtUp = False,
    master: Master = None,
    log: LogFormat = None,
    log_level: LogLevel = "info",
    log_file: LogFile = None,
    quiet: Quiet = False,
    fail_on_dead_letters: FailOnDeadLetters = None,
    listen: Listen = None,
    otlp_endpoint: OtlpEndpoint = None,
    backfill: Backfill = None,
) -> int:
    """Run a pipeline. A pipeline of bounded sources ends when all input is processed.

    Ctrl-C and SIGTERM stop the run after the current batch, unless a sink fails. A second one stops
    it immediately. The next run resumes from the last committed batch.

      penstock run late-flights.yaml
      penstock run shop.yaml --set sinks.out.path=elsewhere --fresh
      penstock run shop.yaml --until-caught-up --log json
      penstock run shop.yaml --quiet --fail-on-dead-letters
      penstock run shop.yaml --listen 9090
      penstock run shop.yaml --otlp-endpoint http://localhost:4318
      penstock run shop.yaml --backfill archive
      penstock run shop.sql --functions pricing.py
    """
    from penstock.spec.front_end import choose

    choose(dialect, strict, settings)
    from penstock import app

    overrides = with_functions(overrides, functions)
    if master is not None:
        overrides = (*overrides, f"runtime.master={master}")
    plan = app.plan(files, overrides=overrides)
    defer_pandas()
    logged = log is not None or log_file is not None
    if not logged and not quiet and sys.stdout.isatty() and sys.stderr.isatty():
        view: LiveView | LogView = _live_view(plan, files)
    else:
        view = _log_view(plan, files, log, "error" if quiet else log_level, log_file)
    exit_on_signal = ExitOnSignal()

    def on_start(plan: Plan, metrics: Metrics) -> None:
        exit_on_signal.raise_pending()
        view.begin(plan, metrics)

    options = app.RunOptions(
        until="caught_up" if until_caught_up else "auto",
        fresh=fresh,
        log=view.log,
        on_start=on_start,
        on_tick=view.tick,
        on_note=view.note,
        signals=True,
        listen=listen,
        otlp_endpoint=otlp_endpoint,
        backfill=backfill,
        id=given_run_id(),
    )
    try:
        with exit_on_signal, view:
            outcome = app.run(plan, options=options)
    except OutputClosed:
        raise
    except PenstockError as error:
        view.fail(error)
        return error.policy.exit_code
    except SystemExit:
        view.note("stopped before the start; nothing was read")
        raise
    view.end(outcome)
    found = view.dead_letters
    if outcome.exit_code == 0 and found >= (fail_on_dead_letters or sys.maxsize):
        view.fail(_too_many_dead_letters(found, fail_on_dead_letters or 1))
        return PenstockError.policy.exit_code
    return outcome.exit_code


def _too_many_dead_letters(count: int, limit: int) -> PenstockError:
    return PenstockError(
        f"expected fewer than {plural(limit, 'dead letter')}, found {count:,}",
        code="dead-letters",
        hint="Show the dead letters with penstock dead list FILE.",
    )


def backfill_without_sink(words: Sequence[str]) -> UserError:
    """Returns the error of the option --backfill without the name of a sink.

    `words` are those of the command line. The hint has the sinks that can be backfilled.
    """
    from penstock import app
    from penstock.runtime.backfills.backfill import list_backfillable

    files = [Path(word) for word in words if Path(word).is_file()]
    hint = "Run penstock run FILE --backfill SINK."
    try:
        sinks = list_backfillable(app.plan(files)) if files else None
    except PenstockError:
        sinks = None
    if sinks:
        hint = f"Add one of the sinks: {', '.join(sinks)}."
    elif sinks is not None:
        hint = "Remove the option: no sink of the pipeline can be backfilled."
    return UserError("--backfill requires the name of a sink", code="usage", hint=hint)


def _live_view(plan: Plan, files: Sequence[Path]) -> LiveView:
    from penstock.cli.live_view import LiveView

    return LiveView(plan, files)


def _log_view(
    plan: Plan, files: Sequence[Path], log: LogFormat, level: LogLevel, path: Path | None
) -> LogView:
    from penstock.cli.log_view import LogView
    from penstock.core.files.rotated_file import open_rotated

    try:
        file = None if path is None else open_rotated(path)
    except OSError as error:
        raise PlanError(
            f"cannot write the log file {path}: {error.strerror}", code="unwritable-file",
            hint="Choose a file in a directory that exists and is writable.",
        ) from error  # fmt: skip
    return LogView(plan, files, log or "console", level, file)


class ExitOnSignal:
    """An exit on SIGINT or SIGTERM, until the run handles signals itself."""

    def __init__(self) -> None:
        self._previous: dict[int, Any] = {}
        self._number: int | None = None

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._handle)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler or signal.SIG_DFL)

    def raise_pending(self) -> None:
        """Exits after a signal: Python drops exceptions of a handler raised inside a destructor."""
        if self._number is not None:
            raise SystemExit(128 + self._number)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._number = number
        self.raise_pending()
