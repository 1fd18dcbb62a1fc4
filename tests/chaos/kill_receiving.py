"""Kills a run that receives again and again, and counts what was acknowledged and is not there.

    python tests/chaos/kill_receiving.py SOURCE [SOURCE ...] [--kills N] [--run-kills N]
        [--messages N] [--seed N]

SOURCE is http, mqtt, rabbitmq or jetstream; the run receives from all that are named. Senders send
each source messages with numbers while a receiver is killed alone, or, `--run-kills` times, in turn
the driver and all processes of the run, which is started again then. Acknowledged messages must be
in the files that the run writes; those that are there more than once are counted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from types import MappingProxyType
from unittest.mock import patch

import psutil
from pyspark.sql import SparkSession

sys.path.append(str(Path(__file__).parents[1]))

from senders import Sender, sender
from victim import MARK, Run, Victim, command_line

from servers.server import Server

TIMEOUT_SECONDS = 120.0
"""Seconds without anything new after which what is missing is lost."""
LEAD = 500
"""How many messages one sender may be ahead of another, so that kills meet all of them."""
RUNTIME = {"state": "state", "restart": {"attempts": 100, "backoff": "200ms", "max_backoff": "1s"}}


@dataclass(frozen=True)
class Count:
    """How many messages were acknowledged, how many of them are missing or there again."""

    acknowledged: int
    missing: int
    repeated: int

    def __str__(self) -> str:
        return (
            f"{self.acknowledged:,} acknowledged, {self.missing:,} missing, "
            f"{self.repeated:,} more than once"
        )


def kill_receiving(
    directory: Path,
    sources: Sequence[str],
    kills: int,
    run_kills: int,
    messages: int,
    seed: int,
    servers: Mapping[str, Server] = MappingProxyType({}),
    spark: SparkSession | None = None,
) -> dict[str, Count]:
    """Kills the run `run_kills` times, and receivers alone up to `kills` times in all.

    The run receives `messages` messages from each source meanwhile. `servers` are running servers
    by source; a source without one gets its own. With `spark` the last run, which is not killed, is
    in this process.
    """
    dice = random.Random(seed)
    with ExitStack() as stack:
        senders = {name: stack.enter_context(sender(name, servers.get(name))) for name in sources}
        (directory / "pipeline.yaml").write_text(_pipeline(senders))
        victim = Victim(directory)
        stack.callback(victim.kill_all)
        stack.enter_context(patch.dict(os.environ, {MARK: victim.mark}))
        process: Run = victim.run()
        pool = stack.enter_context(ThreadPoolExecutor(len(senders)))
        for each in senders.values():
            stack.callback(each.ended.set)
        sending = [
            pool.submit(each.send, _paced(messages, each.ended, senders))
            for each in senders.values()
        ]
        of_run = sorted(dice.sample(range(kills), run_kills))
        for number in range(kills):
            share = messages * (number + dice.random()) / kills
            while _slowest(senders) < share:
                assert process.poll() is None, victim.log()[-3000:]
                for each in sending:
                    if each.done():
                        each.result()
                time.sleep(0.02)
            if number in of_run:
                _kill_run(victim, process, whole=of_run.index(number) % 2 == 1)
                here = spark if number == of_run[-1] else None
                process = victim.run() if here is None else victim.run_here(here)
                stack.callback(process.terminate)
            else:
                _kill_receiver(victim, dice)
        for each in sending:
            each.result()
        return _counted(directory, victim, senders, process)


def _pipeline(senders: Mapping[str, Sender]) -> str:
    sources, sinks = {}, {}
    for name, each in senders.items():
        sources[name] = {**each.options, "format": "json", "schema": "number BIGINT"}
        to = {"type": "files", "from": name, "path": f"out/{name}", "format": "json"}
        sinks[f"{name}_files"] = to
    return json.dumps({"name": "received", "runtime": RUNTIME, "sources": sources, "sinks": sinks})


def _slowest(senders: Mapping[str, Sender]) -> int:
    return min(len(each.acknowledged) for each in senders.values())


def _paced(messages: int, ended: Event, senders: Mapping[str, Sender]) -> Iterator[int]:
    for number in range(messages):
        while number > _slowest(senders) + LEAD:
            if ended.wait(0.01):
                return
        yield number


def _kill_run(victim: Victim, process: Run, whole: bool) -> None:
    """Kills all processes or the driver alone."""
    assert isinstance(process, subprocess.Popen)
    process.kill()
    if whole:
        victim.kill_all()
    process.wait()
    print("killed", "all processes" if whole else "the driver", flush=True)


def _kill_receiver(victim: Victim, dice: random.Random) -> None:
    until = time.monotonic() + TIMEOUT_SECONDS
    while not (receivers := _receivers(victim)):
        assert time.monotonic() < until, f"there is no receiver:\n{victim.log()[-3000:]}"
        time.sleep(0.02)
    with suppress(psutil.NoSuchProcess):
        dice.choice(receivers).send_signal(signal.SIGKILL)
    print("killed a receiver", flush=True)


def _receivers(victim: Victim) -> list[psutil.Process]:
    processes = victim.processes()
    return [
        process
        for process in processes
        if "penstock.runtime.receiving.receiver_process" in command_line(process)
    ]


def _counted(
    directory: Path, victim: Victim, senders: Mapping[str, Sender], process: Run
) -> dict[str, Count]:
    found = _numbers(directory, senders)
    until = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < until and not all(
        each.acknowledged <= found[name].keys() for name, each in senders.items()
    ):
        time.sleep(0.5)
        before, found = found, _numbers(directory, senders)
        if found != before:
            until = time.monotonic() + TIMEOUT_SECONDS
    process.terminate()
    victim.ends(process)
    found = _numbers(directory, senders)
    return {
        name: Count(
            len(each.acknowledged),
            len(each.acknowledged - found[name].keys()),
            found[name].total() - len(found[name]),
        )
        for name, each in senders.items()
    }


def _numbers(directory: Path, sources: Iterable[str]) -> dict[str, Counter[int]]:
    """How often each number is there."""
    return {name: Counter(_written(directory / "out" / name)) for name in sources}


def _written(directory: Path) -> Iterator[int]:
    for path in directory.rglob("*.json*"):
        if path.name[0] not in "._":
            lines = path.read_text().splitlines(keepends=True)
            yield from (json.loads(line)["number"] for line in lines if line.endswith("}\n"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", nargs="+")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--run-kills", type=int, default=7, help="of those")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-chaos-") as directory:
        counts = kill_receiving(
            Path(directory), given.source, given.kills, given.run_kills, given.messages, given.seed
        )
    for name, count in counts.items():
        print(f"{name}: {count}")
    sys.exit(any(count.missing for count in counts.values()))


if __name__ == "__main__":
    main()
