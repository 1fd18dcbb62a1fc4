"""The live view of a run on a terminal, and its summary."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from penstock.cli.metrics_table import (
    format_counts,
    format_elapsed,
    format_executions,
    format_states,
    format_watermark,
    metrics_table,
)
from penstock.cli.summary import (
    dead_letter_hint,
    describe_ending,
    describe_unwritten,
    reported_errors,
)
from penstock.core.error_report import format_error
from penstock.core.errors import PenstockError
from penstock.core.text import printable, shorten

if TYPE_CHECKING:
    from penstock.observe.metrics import Metrics
    from penstock.plan.model import Plan
    from penstock.runtime.outcome import Outcome

MESSAGES = 3
PER_SECOND = 2


class LiveView:
    """A view of the metrics of a run below the rows of print sinks, and the log of the run.

    Standard output passes through the view, and rows appear above the view.
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
            get_renderable=self.render,
            refresh_per_second=PER_SECOND,
            transient=True,
        )

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(self, *raised: object) -> None:
        self._live.stop()

    @property
    def dead_letters(self) -> int:
        """The dead letters of the run."""
        return self._metrics.dead_letters if self._metrics else 0

    def begin(self, plan: Plan, metrics: Metrics) -> None:
        """Starts to show metrics."""
        self._metrics = metrics

    def tick(self) -> None:
        """Does nothing: the view refreshes itself."""

    def note(self, text: str) -> None:
        """Shows a note to the user."""
        if self._metrics is None:
            self._console.print(Text(text))
        else:
            self._stopping = text

    def end(self, outcome: Outcome) -> None:
        """Replaces the view by the summary of the run."""
        self._live.stop()
        assert self._metrics is not None
        for error in reported_errors(outcome).values():
            self.fail(error)
        numbers = self._metrics.snapshot()
        text = " · ".join([format_elapsed(time.monotonic() - self._began), *format_counts(numbers)])
        self._console.print(f"[bold]{self.plan.name}[/] {describe_ending(outcome)}  [dim]{text}[/]")
        self._console.print(metrics_table(numbers, moving=False))
        for line in describe_unwritten(self.plan, outcome, numbers):
            self._console.print(Text(line, "yellow"))
        if hint := dead_letter_hint(self.plan, numbers["dead_letters"], self.files):
            self._console.print(Text(hint, "yellow"))

    def fail(self, error: PenstockError) -> None:
        """Prints an error that ends a query or the run."""
        self._live.stop()
        self._console.print(Text(format_error(error)))

    # The log of the run

    def debug(self, event: str, **facts: Any) -> None:
        """Does nothing."""

    def info(self, event: str, **facts: Any) -> None:
        """Prints the event above the view."""
        self._console.print(Text(_format_line(event, facts), "dim"))

    def warning(self, event: str, **facts: Any) -> None:
        """Shows the event below the metrics, unless the metrics contain its facts."""
        if event not in ("dead letters", "restarting", "sink fails"):
            self._messages.append(f"{time.strftime('%H:%M:%S')} {_format_line(event, facts)}")

    def error(self, event: str, **facts: Any) -> None:
        """Prints the event above the view."""
        self._console.print(Text(_format_line(event, facts), "red"))

    def render(self) -> RenderableType:
        """Returns the view of the run at this time."""
        running = format_elapsed(time.monotonic() - self._began)
        if self._metrics is None:
            return Text.assemble((self.plan.name, "bold"), f"  starting Spark  {running}")
        numbers = self._metrics.snapshot()
        watermark = format_watermark(numbers["watermarks"].values())
        text = " · ".join([f"running for {running}", *format_counts(numbers), *watermark])
        return Group(
            "",
            Text.assemble((self.plan.name, "bold"), f"  {text}", no_wrap=False),
            metrics_table(numbers, moving=True),
            *(_wrapped(line, "dim") for line in format_states(numbers)),
            *(_wrapped(line, "red") for line in format_executions(numbers)),
            *(_wrapped(message, "yellow") for message in self._messages),
            _wrapped(self._stopping or "Ctrl-C stops", "dim"),
        )


def _wrapped(line: str, style: str) -> Text:
    """Returns a line of the view, which would be cut at the width of the terminal otherwise."""
    return Text(line, style, no_wrap=False, overflow="fold")


def _format_line(event: str, facts: dict[str, Any]) -> str:
    text = ", ".join(f"{name} {value}" for name, value in facts.items() if value is not None)
    return shorten(printable(f"{event}: {text}" if text else event))
