"""Options of a run, and the end that they choose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from penstock.core.log import Log, Silent
from penstock.plan.model import Plan

if TYPE_CHECKING:
    from penstock.observe.metrics import Metrics

Until = Literal["auto", "stopped", "caught_up"]
EndOfRun = Literal["stopped", "caught_up", "complete"]


@dataclass(frozen=True)
class RunOptions:
    """Options of a run beside the plan.

    `on_start` is called when the queries start, `on_tick` every second, `on_note` with texts for
    the user. `signals` turns SIGINT and SIGTERM into stop requests. `listen` is PORT or HOST:PORT,
    the address of a server of metrics, health and readiness. `otlp_endpoint` is a base URL to which
    metrics, traces and logs are exported. `backfill` is a sink: the run writes
    only the rows that the sink lacks (see `runtime.backfills.backfill`). `id` is the ID of the run
    in the history, by default a random one.
    """

    until: Until = "auto"
    fresh: bool = False
    log: Log = field(default_factory=Silent)
    on_start: Callable[[Plan, Metrics], None] | None = None
    on_tick: Callable[[], None] | None = None
    on_note: Callable[[str], None] | None = None
    signals: bool = False
    listen: str | None = None
    otlp_endpoint: str | None = None
    backfill: str | None = None
    id: str | None = None

    def note(self, text: str) -> None:
        """Calls `on_note`, if it is set."""
        if self.on_note is not None:
            self.on_note(text)

    def end(self, plan: Plan) -> EndOfRun:
        """Returns the end of a run: `auto` is complete for a bounded plan, else stopped."""
        if self.until == "caught_up":
            return "caught_up"
        return "complete" if self.until == "auto" and plan.bounded else "stopped"


DEFAULT_OPTIONS = RunOptions()
