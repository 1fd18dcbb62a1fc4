"""CPU seconds and wall clock of the tests, printed at the end: `--costs`, `--costs-by-file`.

An area is `unit`, `golden`, `docs`, `chaos`, `contract/NAME` or `integration/NAME`. Costs of a
fixture that several tests share are those of the test that starts or ends it. Under xdist the
workers' costs are added up.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from servers.directory import ALL as SERVERS

MARK = "PENSTOCK_TEST_COSTS"
SECONDS_BETWEEN_SAMPLES = 5.0
"""A sample of all processes of the machine takes four milliseconds or more, in each worker."""
TESTS = Path(__file__).parent
OUTSIDE = "(collection)"
LINES = 60
"""The areas of the table with a line of their own."""
KINDS = ("tests", "threads", "spark", "servers", "others")
"""The owners of CPU seconds: the main thread of the tests, the other threads of its process,
Spark's Java, servers, all other processes."""


def area_of(path: Path) -> str:
    """The area of a test file below `tests/`."""
    directory, name = path.parts[0], path.stem.removeprefix("test_")
    if directory == "contract":
        return f"contract/{name}"
    if directory == "integration":
        return f"integration/{name.partition('_')[0]}"
    return directory


@dataclass
class Usage:
    """CPU seconds of the process and of its descendants, also of those whose parents ended.

    A descendant is recognized by a variable of its environment or by its parent. What a process
    used until it was waited for is in its parent's children times. Only the last moments of a
    process that is killed together with its parents are missing.
    """

    descendants: bool = True
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    _kinds: dict[int, str] = field(default_factory=dict)
    _processes: dict[int, psutil.Process] = field(default_factory=dict)
    _foreign: set[int] = field(default_factory=set)
    _own: dict[int, float] = field(default_factory=dict)
    _sum: float = 0.0
    _main: float = 0.0

    def __post_init__(self) -> None:
        if self.descendants:
            os.environ[MARK] = self.mark
        self._adopt(os.getpid(), "tests")
        self.since_last()

    def since_last(self) -> dict[str, float]:
        """CPU seconds by kind since the last call. A call that raises an error changes nothing."""
        if self.descendants:
            self._find()
        used: dict[str, float] = defaultdict(float)
        total = 0.0
        found = {pid: _cpu_times(process) for pid, process in self._processes.items()}
        main, before = _main_thread_seconds(), self._main
        for pid, times in found.items():
            if times is None:
                self._remove(pid)
                continue
            own = times.user + times.system
            total += own
            if self.descendants:
                total += getattr(times, "children_user", 0) + getattr(times, "children_system", 0)
            used[self._kinds[pid]] += own - self._own[pid]
            self._own[pid] = own
        # Processes that ended between two samples are only in their parents' children times.
        used["others"] += max(0.0, total - self._sum - sum(used.values()))
        self._sum, self._main = total, main
        used["threads"] = max(0.0, used["tests"] - (main - before))
        used["tests"] = main - before
        return used

    def _find(self) -> None:
        pids = set(psutil.pids())
        self._foreign &= pids
        for pid in sorted(pids - self._foreign - self._processes.keys()):
            kind = None
            with suppress(psutil.Error, OSError):
                kind = self._kind(psutil.Process(pid))
            if kind is None:
                self._foreign.add(pid)
            else:
                self._adopt(pid, kind)

    def _kind(self, process: psutil.Process) -> str | None:
        parent = self._kinds.get(process.ppid())
        if parent is None and process.environ().get(MARK) != self.mark:
            return None
        if parent == "servers" or Path(process.cwd()).is_relative_to(SERVERS):
            return "servers"
        return "spark" if process.name() == "java" else "others"

    def _adopt(self, pid: int, kind: str) -> None:
        with suppress(psutil.Error):
            self._processes[pid] = psutil.Process(pid)
            self._kinds[pid] = kind
            self._own[pid] = 0.0

    def _remove(self, pid: int) -> None:
        del self._processes[pid], self._kinds[pid], self._own[pid]


def _main_thread_seconds() -> float:
    """The CPU seconds of the main thread of this process."""
    return sum(
        thread.user_time + thread.system_time
        for thread in psutil.Process().threads()
        if thread.id == os.getpid()
    )


def _cpu_times(process: psutil.Process) -> Any:
    with suppress(psutil.Error):
        return process.cpu_times() if process.is_running() else None
    return None


class Costs:
    """The costs of the tests that this process runs, and of its workers."""

    def __init__(self, by_file: bool, distributes: bool) -> None:
        self._by_file = by_file
        self._usage = Usage(descendants=not distributes)
        self._area, self._since = OUTSIDE, time.monotonic()
        self._machine = psutil.cpu_times()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self.areas: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        threading.Thread(target=self._watch, name="costs", daemon=True).start()

    def _watch(self) -> None:
        while not self._ended.wait(SECONDS_BETWEEN_SAMPLES):
            # psutil looks itself up in the loaded modules, which a test may replace for a moment.
            with suppress(KeyError):
                self._sample()

    def _sample(self, area: str | None = None) -> None:
        with self._lock:
            now, costs = time.monotonic(), self.areas[self._area]
            for kind, seconds in self._usage.since_last().items():
                costs[kind] += seconds
            costs["wall"] += now - self._since
            self._area, self._since = area or self._area, now

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        area = self._area_of(item.path)
        if area != self._area:
            self._sample(area)
        self.areas[area]["count"] += 1
        return (yield)

    def _area_of(self, path: Path) -> str:
        if not path.is_relative_to(TESTS):
            return str(path)
        within = path.relative_to(TESTS)
        return str(within) if self._by_file else area_of(within)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._ended.set()
        self._sample()
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["costs"] = {area: dict(costs) for area, costs in self.areas.items()}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Adds the costs of a worker of xdist."""
        for area, costs in getattr(node, "workeroutput", {}).get("costs", {}).items():
            for kind, seconds in costs.items():
                self.areas[area][kind] += seconds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("costs in seconds")
        for line in (*table(self.areas), machine_use(self._machine, psutil.cpu_times())):
            terminalreporter.write_line(line)


def table(areas: dict[str, dict[str, float]]) -> list[str]:
    """The lines of the table: the `LINES` most expensive areas, all others, and the sums."""
    rows = []
    for area, costs in areas.items():
        kinds = [costs.get(kind, 0) for kind in KINDS]
        rows.append((area, [costs.get("count", 0), costs.get("wall", 0), sum(kinds), *kinds]))
    rows.sort(key=lambda row: -row[1][2])
    others = rows[LINES:]
    listed = [*rows[:LINES], *([_summed(f"({len(others)} others)", others)] if others else [])]
    directories: dict[str, list[tuple[str, list[float]]]] = defaultdict(list)
    for row in rows:
        directories[f"{row[0].partition('/')[0]}/"].append(row)
    directories.pop(f"{OUTSIDE}/", None)
    listed += [_summed(*each) for each in sorted(directories.items())]
    listed.append(_summed("all", rows))
    heads = ("tests", "wall", "CPU", *(f"CPU {kind}" for kind in KINDS))
    shown = [("area", heads), *((area, tuple(map(_number, values))) for area, values in listed)]
    widths = [max(6, len(head)) for head in heads]
    longest = max(len(area) for area, _ in shown)
    return [
        "  ".join([area.ljust(longest), *map(str.rjust, texts, widths)]) for area, texts in shown
    ]


def _summed(name: str, rows: list[tuple[str, list[float]]]) -> tuple[str, list[float]]:
    return name, [sum(column) for column in zip(*(values for _, values in rows), strict=True)]


def machine_use(before: Any, after: Any) -> str:
    """The share of the time that the processors of the machine were busy, by all processes."""
    passed = [one - other for one, other in zip(after, before, strict=True)]
    times = dict(zip(after._fields, passed, strict=True))
    total = sum(times.values()) - times.get("guest", 0) - times.get("guest_nice", 0)
    idle, stolen = (100 * times.get(kind, 0) / total for kind in ("idle", "steal"))
    waiting = 100 * times.get("iowait", 0) / total
    return (
        f"{psutil.cpu_count()} processors, busy {100 - idle - waiting - stolen:.0f} %, "
        f"waiting for disks {waiting:.0f} %, taken by the host {stolen:.0f} %"
    )


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option."""
    option = parser.addoption
    option("--costs", action="store_true", help="print CPU seconds and wall clock by area")
    option("--costs-by-file", action="store_true", help="the same by file")


def pytest_configure(config: pytest.Config) -> None:
    """Measures if the option is there, in workers, too."""
    by_file = config.getoption("--costs-by-file")
    if by_file or config.getoption("--costs"):
        worker = hasattr(config, "workerinput")
        distributes = not worker and bool(config.getoption("numprocesses", None))
        config.pluginmanager.register(Costs(by_file, distributes), "costs-by-area")
