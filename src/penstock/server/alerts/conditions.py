"""Conditions of rules, evaluated at each observation of a pipeline."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from penstock.core.units import duration_text
from penstock.runtime.health import Health
from penstock.server.alerts.output import Output

RuleKind = Literal[
    "failed", "crash_looping", "ended", "disk", "restarts", "lag", "dead_letters", "no_rows",
    "no_output", "watermark_delay",
]  # fmt: skip
KINDS: tuple[RuleKind, ...] = get_args(RuleKind)
"""failed: the run failed, or restarts again and again; crash_looping: only the latter; ended: the
run ended without being stopped; disk: the file system of the state has less than the threshold, in
percent; restarts: more restarts of queries within the minutes than the threshold; lag: records
above the threshold; dead_letters: more per minute than the threshold; no_rows: no rows were read;
no_output: rows were read again and again, and none was written; watermark_delay: seconds above the
threshold. The last five must hold for the minutes of the rule."""


@dataclass(frozen=True)
class Observation:
    """A pipeline at a time. `numbers` are the metrics of its run; None without one.

    `free` is the share of the file system of its state that is free; None if it is not known.
    """

    health: Health
    numbers: Mapping[str, Any] | None
    at: float = field(default_factory=time.time)
    free: float | None = None


@dataclass
class Condition:
    """The condition of one rule for one pipeline, from observation to observation.

    `open` is whether an earlier server has opened its alert: it then holds from the beginning.
    """

    kind: RuleKind
    threshold: float
    minutes: float
    open: bool = False
    _since: float | None = None
    _rows: int | None = None
    _rows_at: float = 0.0
    _counts: list[tuple[float, int]] = field(default_factory=list)
    _output: Output | None = None

    def observe(self, seen: Observation) -> str | None:
        """Returns the message of the condition; None while it does not hold."""
        if self.kind in ("failed", "crash_looping", "ended"):
            return self._of_health(seen.health)
        if self.kind == "disk":
            return self._disk(seen.free)
        if seen.numbers is None or seen.health.state not in _RUNNING:
            self._since, self._rows, self._counts, self._output = None, None, [], None
            self.open = False
            return None
        if self.kind == "no_rows":
            return self._no_rows(seen)
        if self.kind == "no_output":
            return self._no_output(seen)
        if self.kind in ("dead_letters", "restarts"):
            return self._counted(seen)
        return self._above(seen)

    def _of_health(self, health: Health) -> str | None:
        states = {
            "failed": ("failed", "crash-looping"), "crash_looping": ("crash-looping",),
            "ended": ("complete",),
        }[self.kind]  # fmt: skip
        if health.state not in states:
            return None
        reason = health.reason.message if health.reason else "the run has ended"
        return f"{health.state}: {reason}"

    def _disk(self, free: float | None) -> str | None:
        if free is None or 100 * free >= self.threshold:
            return None
        return f"{100 * free:.1f} % of the disk of the state are free, below {self.threshold:g} %"

    def _above(self, seen: Observation) -> str | None:
        """Returns the message of a value that has been above the threshold for the minutes."""
        assert seen.numbers is not None
        value = _lag(seen.numbers) if self.kind == "lag" else _delay(seen.numbers, seen.at)
        if value is None or value <= self.threshold:
            self._since, self.open = None, False
            return None
        if self._since is None:
            self._since = seen.at - self.minutes * 60 if self.open else seen.at
        if seen.at - self._since < self.minutes * 60:
            return None
        subject, limit = f"a lag of {value:,.0f} records", f"{self.threshold:,.0f}"
        if self.kind == "watermark_delay":
            subject = f"a watermark delay of {duration_text(round(value))}"
            limit = duration_text(self.threshold)
        lasting = f" for {duration_text(round(seen.at - self._since))}" if self.minutes else ""
        return f"{subject}, above {limit}{lasting}"

    def _no_rows(self, seen: Observation) -> str | None:
        rows = _rows(seen.numbers or {})
        if rows != self._rows:
            held = self.open and self._rows is None
            self._rows, self._rows_at = rows, seen.at - self.minutes * 60 if held else seen.at
        silent = seen.at - self._rows_at
        if silent < self.minutes * 60:
            return None
        return f"no rows were read for {duration_text(round(silent))}"

    def _no_output(self, seen: Observation) -> str | None:
        """Returns the message of input that has arrived for the minutes without output."""
        numbers, window = seen.numbers or {}, max(self.minutes, 1.0) * 60
        if self._output is None:
            self._output = Output(_rows(numbers), _rows(numbers, "sink"))
            if self.open:
                self._output.first, self._output.last = seen.at - window, seen.at
        self._output.observe(seen.at, _rows(numbers), _rows(numbers, "sink"), window)
        lasting = self._output.lasting(seen.at, window)
        if lasting is None or lasting < window:
            return None
        return f"rows were read for {duration_text(round(lasting))}, and none was written"

    def _counted(self, seen: Observation) -> str | None:
        """Returns the message of a count in the last minutes, of one run or several."""
        count = int((seen.numbers or {}).get(self.kind, 0))
        noun = self.kind.replace("_", " ")
        if self._counts and count < self._counts[-1][1]:
            self._counts = [(seen.at, 0)]  # another run counts from zero
        self._counts.append((seen.at, count))
        minutes = max(self.minutes, 1.0)
        start = seen.at - minutes * 60
        if self.open and self._counts[0][0] > start:
            return f"{noun} are counted"  # for the first minutes of this server
        while len(self._counts) > 1 and self._counts[1][0] <= start:
            del self._counts[0]
        increase = count - self._counts[0][1]
        if self.kind == "restarts":
            if increase <= self.threshold:
                return None
            lasting = duration_text(round(minutes * 60))
            return f"{increase} restarts within {lasting}, above {self.threshold:g}"
        if increase / minutes <= self.threshold:
            return None
        return f"{increase / minutes:,.1f} dead letters per minute, above {self.threshold:,.1f}"


_RUNNING = frozenset({"running", "idle", "slow", "retrying", "starting"})


def _rows(numbers: Mapping[str, Any], kind: str = "source") -> int:
    nodes = numbers.get("nodes", {}).values()
    return sum(node["rows"] for node in nodes if node["kind"] == kind)


def _lag(numbers: Mapping[str, Any]) -> float | None:
    lags = [node["lag"] for node in numbers.get("nodes", {}).values() if node["lag"] is not None]
    return float(sum(lags)) if lags else None


def _delay(numbers: Mapping[str, Any], at: float) -> float | None:
    """Returns the time between now and the earliest watermark, in seconds.

    A query without an event time has none yet, and Spark shows 1970. The numbers of a run of an
    earlier version may have none.
    """
    found = (query.get("watermark") for query in numbers.get("queries", {}).values())
    delays = [at - watermark for watermark in found if watermark is not None]
    return max(delays) if delays else None
