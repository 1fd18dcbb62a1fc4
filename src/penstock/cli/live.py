"""A run on a terminal: one calm view while it runs, and a summary when it is over."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from penstock.cli.ending import dead_letter_hint, ending
from penstock.cli.flows import flow_table, happened, span, watermark
from penstock.core.errors import PenstockError, report
from penstock.core.text import shorten

if TYPE_CHECKING:
    from penstock.observe.metrics import Metrics
    from penstock.plan.model import Plan
    from penstock.runtime.supervise import Outcome

MESSAGES = 3
PER_SECOND = 2


class LiveView:
    """The numbers of a run below whatever print sinks write; it is the run's log as well.

    Standard output goes through the view while it is there, so that rows stand above it whole.
    """

    def __init__(self, plan: Plan, files: Sequence[Path]) -> None:
        self.plan, self.files = plan, files
        self.log = self
        self._began = time.monotonic()
        self._metrics: Metrics | None = None
        self._stopping: str | None = None
        self._messages: deque[str] = deque(maxlen=MESSAGES)
        self._console = Console(stderr=True, soft_wrap=True, highlight=False)
        self._live = Live(
            console=self._console,
            get_renderable=self._view,
            refresh_per_second=PER_SECOND,
            transient=True,
        )

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(self, *raised: object) -> None:
        self._live.stop()

    def begin(self, plan: Plan, metrics: Metrics) -> None:
        """The queries start."""
        self._metrics = metrics

    def tick(self) -> None:
        """Called every second; the view has a clock of its own."""

    def note(self, text: str) -> None:
        """Something that the user should know."""
        if self._metrics is None:
            self._console.print(Text(text))
        else:
            self._stopping = text

    def end(self, outcome: Outcome) -> None:
        """The run is over: the view makes way for what it did."""
        self._live.stop()
        assert self._metrics is not None
        for error in outcome.errors.values():
            self.fail(error)
        numbers = self._metrics.snapshot()
        told = " · ".join([span(time.monotonic() - self._began), *happened(numbers)])
        self._console.print(f"[bold]{self.plan.name}[/] {ending(outcome)}  [dim]{told}[/]")
        self._console.print(flow_table(numbers, moving=False))
        if hint := dead_letter_hint(self.plan, numbers["dead_letters"], self.files):
            self._console.print(Text(hint, "yellow"))

    def fail(self, error: PenstockError) -> None:
        """An error that ends a query or the run."""
        self._live.stop()
        self._console.print(Text(report(error)))

    # The run's log

    def debug(self, event: str, **facts: Any) -> None:
        """Nothing of it is shown."""

    def info(self, event: str, **facts: Any) -> None:
        """Stays above the view."""
        self._console.print(Text(_line(event, facts), "dim"))

    def warning(self, event: str, **facts: Any) -> None:
        """Is shown for a while. Dead letters have a column of their own."""
        if event == "restarting":
            event = "restarting {query} in {pause} ({attempt}): {error}".format(**facts)
            facts = {}
        if event != "dead letters":
            self._messages.append(f"{time.strftime('%H:%M:%S')} {_line(event, facts)}")

    def error(self, event: str, **facts: Any) -> None:
        """Stays above the view."""
        self._console.print(Text(_line(event, facts), "red"))

    def _view(self) -> RenderableType:
        running = span(time.monotonic() - self._began)
        if self._metrics is None:
            return Text.assemble((self.plan.name, "bold"), f"  starting Spark  {running}")
        numbers = self._metrics.snapshot()
        told = " · ".join([f"running for {running}", *happened(numbers), *watermark(numbers)])
        hint = self._stopping or "Ctrl-C stops"
        lines = [Text.assemble((self.plan.name, "bold"), f"  {told} · ", (hint, "dim"))]
        messages = [Text(message, "yellow") for message in self._messages]
        return Group("", *lines, flow_table(numbers, moving=True), *messages)


def _line(event: str, facts: dict[str, Any]) -> str:
    told = ", ".join(f"{name} {value}" for name, value in facts.items() if value is not None)
    return shorten(f"{event}: {told}" if told else event)
