"""`penstock run`: runs a pipeline."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from penstock.cli.options import Files, Sets
from penstock.core.errors import PenstockError

if TYPE_CHECKING:
    from penstock.cli.lines import Lines
    from penstock.cli.live import LiveView
    from penstock.observe.metrics import Metrics
    from penstock.plan.model import Plan

Fresh = Annotated[bool, Parameter(help="Starts over: forgets offsets, windows and dead letters.")]
UntilCaughtUp = Annotated[
    bool, Parameter(help="Ends when every source is where it was at the start; windows stay open.")
]
Master = Annotated[
    str | None,
    Parameter(metavar="URL", help="The Spark master, as in local[4] or spark://host:7077."),
]
LogFormat = Annotated[
    Literal["console", "json"] | None,
    Parameter(name="--log", help="Log lines on standard error instead of the live view."),
]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error"], Parameter(help="The least that is logged.")
]
Quiet = Annotated[bool, Parameter(help="Shows nothing but errors and what print sinks write.")]


def run(
    files: Files,
    /,
    *,
    set: Sets = (),
    fresh: Fresh = False,
    until_caught_up: UntilCaughtUp = False,
    master: Master = None,
    log: LogFormat = None,
    log_level: LogLevel = "info",
    quiet: Quiet = False,
) -> int:
    """Run a pipeline, to its end where its sources have one.

    Ctrl-C and SIGTERM finish the batch under way; a second one stops at once.
    The next run goes on where this one stopped.

      penstock run late-flights.yaml
      penstock run shop.yaml --set sinks.out.path=elsewhere --fresh
      penstock run shop.yaml --until-caught-up --log json
    """
    from penstock import app

    if master is not None:
        set = (*set, f"runtime.master={master}")
    plan = app.plan(files, sets=set)
    watched = log is None and not quiet and sys.stdout.isatty() and sys.stderr.isatty()
    view = _live(plan, files) if watched else _lines(plan, files, log, log_level, quiet)
    leaving = Leaving()

    def begin(plan: Plan, metrics: Metrics) -> None:
        leaving.insist()
        view.begin(plan, metrics)

    options = app.RunOptions(
        until="caught_up" if until_caught_up else "auto",
        fresh=fresh,
        log=view.log,
        on_start=begin,
        on_tick=view.tick,
        on_note=view.note,
        signals=True,
    )
    try:
        with leaving, view:
            outcome = app.run(plan, options=options)
    except PenstockError as error:
        view.fail(error)
        return error.conduct.exit_code
    except SystemExit:
        view.note("stopped before it began: nothing was read")
        raise
    view.end(outcome)
    return outcome.exit_code


def _live(plan: Plan, files: Sequence[Path]) -> LiveView:
    from penstock.cli.live import LiveView

    return LiveView(plan, files)


def _lines(
    plan: Plan, files: Sequence[Path], log: LogFormat, level: LogLevel, quiet: bool
) -> Lines:
    from penstock.cli.lines import Lines

    return Lines(plan, files, log or "console", "error" if quiet else level)


class Leaving:
    """Until the run looks after its signals itself, they end it: there is no batch to finish."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._number: int | None = None

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for each in (signal.SIGINT, signal.SIGTERM):
                self._before[each] = signal.signal(each, self._leave)

    def __exit__(self, *_: object) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler or signal.SIG_DFL)

    def insist(self) -> None:
        """Leaves if a signal came: Python drops what a handler raises inside a destructor."""
        if self._number is not None:
            raise SystemExit(128 + self._number)

    def _leave(self, number: int, frame: FrameType | None) -> None:
        self._number = number
        self.insist()
