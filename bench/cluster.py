"""CPU seconds of pipelines on a standalone cluster of one and two workers, beside a local master.

    ./dev bench cluster [--json] [--warm N] [--batches N] [--rows N] [--tasks N] [--only NAME]
                        [--pairs]

The ratio of a cluster falls with the number of batches, as each executor compiles its own code, and
with the rows of a batch: `--only stateless --warm 500` and `--rows 20000` show that. The last lines
mark ratios above 1.3, the limit for a long run. `--pairs` leaves out the kinds beside the local
master and two workers.

One machine has all processes: a master and two workers of one core, each in a mount namespace of
its own. On each kind of cluster one application runs the pipelines in turn: their batches have the
same number of rows, 2,000 without `--rows`. The last kind has two workers and `--tasks` tasks in
place of two, which shows the cost of a task; it runs the first pipeline only. CPU seconds are those
of batches after the first `--warm` ones, by class of process. On a local master the driver's JVM
runs the tasks, and the helpers of the driver are also the workers of tasks. All run the Java of the
system. The line `threads` divides the milliseconds of Java in a batch by the work of its threads.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import options
import psutil
from cluster_threads import thread_seconds
from cluster_work import PIPELINES, PROGRAM, SOURCE
from measure import Failed
from running import Running

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from servers.spark import SparkCluster

CLASSES = ("driver JVM", "driver Python", "helpers", "executor JVM", "executor Python", "daemons")
LIMIT = 1.3
"""The CPU seconds of a batch in a long run on a cluster, to those on a local master."""
TIMEOUT_SECONDS = 180.0
"""The longest time without a batch."""


@dataclass(frozen=True)
class Kind:
    """A master with a number of cores, and the tasks of a stage."""

    name: str
    local: bool
    cores: int
    tasks: int

    def runtime(self, url: str) -> str:
        common = f"  java: system\n  partitions: {self.tasks}\n"
        if self.local:
            return f"  master: local[{self.cores}]\n{common}"
        settings = f"{{spark.executor.memory: 512m, spark.cores.max: {self.cores}}}"
        return f"  master: {url}\n{common}  spark: {settings}\n"


def kinds(tasks: int) -> tuple[Kind, ...]:
    """Returns the kinds of clusters, with this number of tasks in the last one."""
    return (
        Kind("local[2]", True, 2, 2),
        Kind("1 worker", False, 1, 2),
        Kind("2 workers", False, 2, 2),
        Kind(f"{tasks} tasks", False, 2, tasks),
    )


@dataclass
class Costs:
    """The batches of a pipeline and their CPU seconds, by class of process."""

    kind: str
    pipeline: str
    first: Mapping[str, float]
    """Until the first batch is written."""
    batch: Mapping[str, float]
    first_seconds: float
    batch_seconds: float
    tasks: float
    """The number of tasks of a batch."""
    threads: Mapping[str, float]
    """The CPU seconds of a batch in the threads of Java, by class of process and work."""
    load: float = field(default_factory=lambda: os.getloadavg()[0])

    @property
    def cpu(self) -> float:
        """The CPU seconds of a batch."""
        return sum(self.batch.values())


class Application:
    """Pipelines that one application of a cluster runs in turn."""

    def __init__(
        self, directory: Path, kind: Kind, cluster: SparkCluster, names: Sequence[str], rows: int
    ) -> None:  # fmt: skip
        self._kind, self._cluster = kind, cluster
        self.paths = {name: directory / name / f"{name}.yaml" for name in names}
        for name, path in self.paths.items():
            path.parent.mkdir()
            source = SOURCE.replace("TASKS", str(kind.tasks)).replace("ROWS", str(rows))
            runtime = f"name: {name}\nruntime:\n{kind.runtime(cluster.url)}"
            path.write_text(runtime + source + PIPELINES[name])
        command = [sys.executable, "-c", PROGRAM, *map(str, self.paths.values())]
        self.engine = Running(command, directory, {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"})

    def costs(self, warm: int, batches: int) -> Iterator[Costs]:
        """Yields the costs of each pipeline in turn."""
        with self.engine:
            for name, path in self.paths.items():
                yield self._costs(name, path.parent / ".penstock" / name, warm, batches)

    def _costs(self, name: str, state: Path, warm: int, batches: int) -> Costs:
        began, before = time.monotonic(), self._cpu()
        self._await(state, 1)
        first_seconds, first = time.monotonic() - began, self._cpu()
        start = self._await(state, warm)
        began, middle, threads = time.monotonic(), self._cpu(), self._threads()
        end = self._await(state, start + batches)
        seconds, after = time.monotonic() - began, self._cpu()
        done, ended = end - start, self._threads()
        (state / "stop").touch()
        self._await(state, 1, "tasks")
        return Costs(
            self._kind.name, name, _difference(first, before), _difference(after, middle, done),
            first_seconds, seconds / done, int((state / "tasks").read_text()) / _batches(state),
            {name: (value - threads[name]) / done for name, value in ended.items()},
        )  # fmt: skip

    def _await(self, state: Path, batches: int, file: str | None = None) -> int:
        """Waits for a file or a number of batches, and returns the number of batches."""
        last, until = -1, 0.0
        while True:
            found = _batches(state)
            if found >= batches if file is None else (state / file).exists():
                return found
            if file is None:
                self.engine.check()
            if found > last:
                last, until = found, time.monotonic() + TIMEOUT_SECONDS
            if time.monotonic() > until:
                raise Failed(f"{state.name} has written {found} of {batches} batches")
            time.sleep(0.02)

    def _cpu(self) -> Counter[str]:
        """Returns the CPU seconds so far, by class of process."""
        found = Counter(dict.fromkeys(CLASSES, 0.0))
        daemons = [daemon.process.pid for daemon in self._cluster.daemons]
        for process in self.engine.members():
            found[_class_at_driver(process, self.engine.pid)] += _seconds(process)
        for daemon in daemons:
            found["daemons"] += _seconds(psutil.Process(daemon), reaped=False)
            for process in psutil.Process(daemon).children(recursive=True):
                found[f"executor {_language(process)}"] += _seconds(process)
        return found

    def _threads(self) -> Counter[str]:
        """Returns the CPU seconds so far of the threads of Java, by class of process and work."""
        daemons = [psutil.Process(daemon.process.pid) for daemon in self._cluster.daemons]
        executors = [each for daemon in daemons for each in daemon.children()]
        found: Counter[str] = Counter()
        for name, processes in (("driver", self.engine.members()), ("executor", executors)):
            for process in processes:
                if _language(process) == "JVM":
                    for work, seconds in thread_seconds(process.pid).items():
                        found[f"{name} {work}"] += seconds
        return found


def _class_at_driver(process: psutil.Process, driver: int) -> str:
    if process.pid == driver:
        return "driver Python"
    return "driver JVM" if _language(process) == "JVM" else "helpers"


def _language(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        if Path(process.exe()).name == "java":
            return "JVM"
    return "Python"


def _seconds(process: psutil.Process, *, reaped: bool = True) -> float:
    """Returns the CPU seconds of a process and of its children that have ended."""
    with suppress(psutil.NoSuchProcess):
        return float(sum(process.cpu_times()[: 4 if reaped else 2]))
    return 0.0


def _difference(
    after: Mapping[str, float], before: Mapping[str, float], divisor: int = 1
) -> dict[str, float]:
    return {name: (after[name] - before[name]) / divisor for name in CLASSES}


def _batches(state: Path) -> int:
    """Returns the number of batches that a pipeline has committed."""
    numbers = [int(entry.name) for entry in state.glob("checkpoints/*/commits/[0-9]*")]
    return max(numbers, default=-1) + 1


def all_costs(
    names: Sequence[str], of: Sequence[Kind], rows: int, warm: int, batches: int
) -> Iterator[Costs]:
    """Yields the costs of the pipelines on each kind of cluster."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        hidden = Path(scratch, "hidden")
        hidden.mkdir()
        with SparkCluster(hidden) as cluster:
            for number, kind in enumerate(of):
                directory = Path(scratch, str(number))
                directory.mkdir()
                chosen = names if kind.tasks == of[0].tasks else names[:1]
                application = Application(directory, kind, cluster, chosen, rows)
                yield from application.costs(warm, batches)


def summary(found: Sequence[Costs]) -> dict[str, dict[str, float]]:
    """Returns the ratios to the local master and the costs of tasks, by pipeline.

    The costs are those of a line through the batches of two workers with few and with many tasks.
    """
    result: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(costs.pipeline for costs in found):
        local, *clusters = (costs for costs in found if costs.pipeline == name)
        values = result[name] = {
            f"{each.kind} to {local.kind}": each.cpu / local.cpu
            for each in clusters
            if each.tasks < 2 * local.tasks
        }
        few, many = clusters[-2:] if len(clusters) > 1 else (local, local)
        if many.tasks < 2 * few.tasks:
            continue
        tasks = many.tasks - few.tasks
        driver = 1000 * (_at_driver(many) - _at_driver(few)) / tasks
        values["driver ms per task"] = driver
        values["driver ms per batch"] = 1000 * _at_driver(few) - driver * few.tasks
        values["all ms per task"] = 1000 * (many.cpu - few.cpu) / tasks
    return result


def _at_driver(costs: Costs) -> float:
    return sum(costs.batch[name] for name in CLASSES[:3])


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--warm", type=int, default=80, help="batches that are not counted")
    parser.add_argument("--batches", type=int, default=30, help="batches that are counted")
    parser.add_argument("--rows", type=int, default=2000, help="rows of a batch")
    parser.add_argument("--tasks", type=int, default=16, help="tasks of the last kind")
    parser.add_argument("--only", choices=PIPELINES, action="append", metavar="NAME")
    parser.add_argument("--pairs", action="store_true", help="local master and two workers only")
    given = parser.parse_args()
    of = kinds(given.tasks)
    of = (of[0], of[2]) if given.pairs else of
    names = given.only or list(PIPELINES)
    found = []
    for costs in all_costs(names, of, given.rows, given.warm, given.batches):
        found.append(costs)
        if not given.json:
            _show(costs, header=len(found) == 1)
    ratios = summary(found)
    if given.json:
        print(json.dumps({"rows": [vars(costs) for costs in found], "summary": ratios}))
        return
    print()
    for name, values in ratios.items():
        print(f"{name:>10}  " + ", ".join(_text(key, value) for key, value in values.items()))


def _text(name: str, value: float) -> str:
    above = f" (above {LIMIT})" if " to " in name and value > LIMIT else ""
    return f"{name} {value:.2f}{above}"


def _show(costs: Costs, *, header: bool) -> None:
    if header:
        print("CPU seconds until the first batch, and CPU milliseconds of each later batch")
        classes = "".join(f"{name:>16}" for name in CLASSES)
        print(f"{'':>32}{classes}{'all':>10}{'wall':>10}{'tasks':>7}{'load':>6}")
    wall, load = (costs.first_seconds, 1000 * costs.batch_seconds), costs.load
    for name, values, scale, text in (
        ("first", costs.first, 1, ">16.2f"), ("batch", costs.batch, 1000, ">16.1f")
    ):  # fmt: skip
        numbers = "".join(format(scale * values[each], text) for each in CLASSES)
        total = f"{scale * sum(values.values()):>10.1f}{wall[scale > 1]:>10.1f}"
        last = f"{costs.tasks:>7.1f}{load:>6.1f}" if scale > 1 else ""
        print(f"{costs.kind:>12}{costs.pipeline:>12}{name:>8}{numbers}{total}{last}", flush=True)
    threads = (f"{name} {1000 * value:.1f}" for name, value in sorted(costs.threads.items()))
    print(f"{'':>24}{'threads':>8}  {', '.join(threads)}", flush=True)


if __name__ == "__main__":
    main()
