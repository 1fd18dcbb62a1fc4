"""Losses of a standalone cluster during a run: processes and disks.

    python tests/chaos/kill_cluster.py [--rounds N] [--records N] [--only NAME ...] [--seed N]

Each round has each of the losses below, in a random order, during a run of the pipeline of
`kill_updating.py` with a source that has damaged rows. The cluster has two workers of one core.
After each loss no row may be there twice. In the end the tables must be those of one computation
over all input, and each damaged row must be a dead letter. The last lines name the losses of which
both is true.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from kill_updating import PIPELINE, assert_complete, write_input
from ruamel.yaml import YAML
from victim import LONGEST, Victim

from penstock.runtime.dead_letters.store import DeadLetters
from servers.spark import HOSTS, SparkCluster, Worker

TIMEOUT = "10s"
"""The time after which Spark removes a silent executor."""
PAUSES = {"pause": 3.0, "long-pause": 25.0}
ENDS = 3
"""The maximum number of runs that end with an error, of which each is started again."""
DAMAGED = 10
LOSSES = (
    "executor", "executors", "worker", "master", "driver", "disk", "pause", "long-pause",
)  # fmt: skip


@dataclass
class Losses:
    """A run on a cluster, and its losses by name."""

    cluster: SparkCluster
    victim: Victim
    dice: random.Random
    process: subprocess.Popen[bytes] | None = None
    ends: list[int] = field(default_factory=list)
    """The codes of runs that ended by themselves."""

    def all(self) -> dict[str, Callable[[], None]]:
        return {
            "executor": lambda: self._one().signal_executors(signal.SIGKILL),
            "executors": self._kill_executors,
            "worker": self._kill_worker,
            "master": self._kill_master,
            "driver": self._kill_driver,
            "disk": self._fill_disk,
            "pause": lambda: self._pause(PAUSES["pause"]),
            "long-pause": lambda: self._pause(PAUSES["long-pause"]),
        }

    def suffer(self, name: str) -> None:
        """Waits for a batch or two, has a loss, and waits until the run writes batches again."""
        began, before = time.monotonic(), self.victim.commits()
        self.await_batches(self.dice.randrange(1, 3))
        time.sleep(self.dice.random())
        self.all()[name]()
        self.await_batches(2)
        after = self.victim.commits() - before
        repeated = [n for n, count in found_raw(self.victim.directory).items() if count > 1]
        assert not repeated, f"rows are there twice after {name}: {repeated[:9]}"
        print(f"{name}: {after} batches in {time.monotonic() - began:.0f} s", flush=True)

    def await_batches(self, count: int) -> None:
        """Waits for batches of a run, which is started again if it has ended."""
        expected, deadline = self.victim.commits() + count, time.monotonic() + LONGEST
        while self.victim.commits() < expected:
            self._ensure_run()
            if time.monotonic() > deadline:
                raise AssertionError(f"no batch in {LONGEST} s:\n{self.victim.log()[-3000:]}")
            time.sleep(0.05)

    def end(self) -> None:
        """Waits for the end of the run, which is started again after an error."""
        for _ in range(ENDS):
            has_ended = self.process is not None and self.process.poll() == 0
            code = 0 if has_ended else self._ensure_run().wait(LONGEST)
            if code == 0:
                return
        raise AssertionError(f"ended with code {code}:\n{self.victim.log()[-3000:]}")

    def _ensure_run(self) -> subprocess.Popen[bytes]:
        if self.process is not None and self.process.poll() not in (None, 0):
            self.ends.append(self.process.returncode)
            last = self.victim.log().strip()[-1500:]
            assert len(self.ends) <= ENDS, f"the run has ended with the codes {self.ends}:\n{last}"
            print(f"  the run has ended with code {self.ends[-1]}:\n{last}", flush=True)
            self.process = None
        if self.process is None:
            self.process = self.victim.run("--until-caught-up")
        elif self.process.returncode == 0:
            raise AssertionError("the input ended before all losses")
        return self.process

    def _one(self) -> Worker:
        return self.cluster.workers[self.dice.choice(list(HOSTS))]

    def _kill_executors(self) -> None:
        for worker in self.cluster.workers.values():
            worker.signal_executors(signal.SIGKILL)

    def _kill_worker(self) -> None:
        worker = self._one()
        worker.kill()
        self.await_batches(1)
        worker.start()

    def _kill_master(self) -> None:
        self.cluster.master.kill()
        self.await_batches(1)
        self.cluster.master.start()

    def _kill_driver(self) -> None:
        assert self.process is not None
        print(f"  {self.victim.kill(self.process, self.dice)}")
        self.process = None

    def _fill_disk(self) -> None:
        worker = self._one()
        worker.fill_disk()
        time.sleep(10)
        worker.free_disk()

    def _pause(self, seconds: float) -> None:
        worker = self._one()
        worker.signal_executors(signal.SIGSTOP)
        time.sleep(seconds)
        worker.signal_executors(signal.SIGCONT)


def pipeline(url: str) -> str:
    """Returns the pipeline on the cluster, with a source of rows of which some are damaged."""
    document = YAML(typ="safe").load(PIPELINE)
    document["runtime"] |= {
        "master": url,
        "spark": {
            "spark.executor.memory": "512m",
            "spark.network.timeout": TIMEOUT,
            "spark.network.timeoutInterval": "2s",
            "spark.executor.heartbeatInterval": "2s",
        },
    }
    document["sources"]["raw"] = {
        "type": "files", "path": "in/raw/*.jsonl", "order": "name", "max_files": 1, "watch": True,
        "schema": "n LONG",
    }  # fmt: skip
    code = 'def transform(row):\n    assert row["n"] % 5, "a fifth"\n    return row\n'
    document["transforms"]["checked"] = {
        "type": "python", "from": "raw", "per": "row", "schema": "n LONG", "code": code,
    }  # fmt: skip
    out = {"type": "files", "from": "checked", "path": "out/raw", "format": "json"}
    document["sinks"]["raw_out"] = out
    return json.dumps(document)


def write_raw(directory: Path, records: int, files: int) -> None:
    """Writes the rows of `raw`. A tenth of the lines are damaged."""
    (directory / "in/raw").mkdir(parents=True)
    for number in range(files):
        lines = [
            "{damaged" if n % DAMAGED == 3 else json.dumps({"n": n})
            for n in range(number, records, files)
        ]
        (directory / f"in/raw/{number:03}.jsonl").write_text("".join(f"{x}\n" for x in lines))


def found_raw(directory: Path) -> Counter[int]:
    """Returns the rows of `raw_out` with their number."""
    return Counter(
        json.loads(line)["n"]
        for path in (directory / "out/raw").glob("part-*")
        for line in path.read_text().splitlines()
    )


def assert_raw(directory: Path, records: int) -> None:
    """Compares the rows of `raw_out` and the dead letters. Raises AssertionError."""
    valid = [n for n in range(records) if n % DAMAGED != 3]
    found = found_raw(directory)
    expected = Counter(n for n in valid if n % 5)
    assert found == expected, f"lost {expected - found}, not expected {found - expected}"
    letters = Counter(
        DeadLetters(directory / "state/readings/dead_letters").read()["node"].to_pylist()
    )
    damaged = {"raw": records - len(valid), "checked": len(valid) - len(expected)}
    assert letters == damaged, f"dead letters {letters}, expected {damaged}"


def kill_cluster(
    directory: Path, names: Sequence[str], records: int, seed: int, cluster: SparkCluster
) -> None:
    """Has the losses of these names in turn, lets the run end, and compares.

    Raises AssertionError. A run that ends before all losses is an error, too: it has too few files.
    """
    files = 6 * len(names) + 6
    orders = write_input(directory, records, files, pipeline(cluster.url))
    write_raw(directory, records, files)
    victim = Victim(directory)
    losses = Losses(cluster, victim, random.Random(seed))
    try:
        for name in names:
            losses.suffer(name)
        losses.end()
    finally:
        victim.kill_all()
    assert_complete(directory, orders)
    assert_raw(directory, records)
    assert "Traceback" not in victim.log(), victim.log()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--records", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1000))
    parser.add_argument("--only", nargs="+", metavar="NAME", help="some of the losses")
    given = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="kill-cluster-"))
    print(f"seed {given.seed}, in {scratch}", flush=True)
    began, dice = time.monotonic(), random.Random(given.seed)
    names: list[str] = []
    for _ in range(given.rounds):
        each = given.only or list(LOSSES)
        names += dice.sample(each, len(each))
    hidden, directory = scratch / "hidden", scratch / "run"
    for path in (hidden, directory):
        path.mkdir()
    try:
        with SparkCluster(hidden) as cluster:
            kill_cluster(directory, names, given.records, given.seed, cluster)
    except AssertionError as error:
        raise SystemExit(f"wrong: {error}") from None
    shutil.rmtree(scratch)
    print(f"all tables are those of one computation ({time.monotonic() - began:.0f} s)")
    for name, count in sorted(Counter(names).items()):
        print(f"exact: {name} ({count})")


if __name__ == "__main__":
    main()
