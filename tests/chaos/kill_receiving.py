"""Kills a run that receives again and again, and counts what was acknowledged and is not there.

    python tests/chaos/kill_receiving.py SOURCE [SOURCE ...] [--kills N] [--messages N] [--seed N]

SOURCE is http, mqtt, rabbitmq or jetstream; the run receives from all that are named. Senders send
each source messages with numbers for as long as the run is killed, at random all of its processes,
the driver or a receiver alone, and started again. What they were told is safe must be in the files
that the run writes; what is there more than once is counted.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Event

sys.path.append(str(Path(__file__).parents[1]))

from senders import Sender, sender
from victim import Victim

PATIENCE = 120.0
"""Seconds without anything new after which what is missing is lost."""
LEAD = 500
"""How many messages one sender may be ahead of another, so that kills meet all of them."""
RUNTIME = {"state": "state", "restart": {"attempts": 100, "backoff": "200ms..1s"}}


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
    directory: Path, sources: Sequence[str], kills: int, messages: int, seed: int
) -> dict[str, Count]:
    """Kills a run so often while it receives so many messages from each source."""
    dice = random.Random(seed)
    with ExitStack() as stack:
        senders = {name: stack.enter_context(sender(name)) for name in sources}
        (directory / "pipeline.yaml").write_text(_pipeline(senders))
        victim = Victim(directory)
        stack.callback(victim.kill_all)
        process = victim.run()
        pool = stack.enter_context(ThreadPoolExecutor(len(senders)))
        for each in senders.values():
            stack.callback(each.ended.set)
        sending = [
            pool.submit(each.send, _paced(messages, each.ended, senders))
            for each in senders.values()
        ]
        for number in range(kills):
            share = messages * (number + dice.random()) / kills
            while _slowest(senders) < share:
                assert process.poll() is None, victim.log()[-3000:]
                for each in sending:
                    if each.done():
                        each.result()
                time.sleep(0.02)
            process = _killed(victim, process, dice)
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


def _killed(
    victim: Victim, process: subprocess.Popen[bytes], dice: random.Random
) -> subprocess.Popen[bytes]:
    """One kill. Returns the run that goes on."""
    receivers = [p for p in victim.processes() if "penstock.runtime.receive" in p.cmdline()]
    if receivers and dice.random() < 0.3:
        dice.choice(receivers).send_signal(signal.SIGKILL)
        print("killed a receiver", flush=True)
        return process
    print("killed", victim.kill(process, dice), flush=True)
    return victim.run()


def _counted(
    directory: Path, victim: Victim, senders: Mapping[str, Sender], process: subprocess.Popen[bytes]
) -> dict[str, Count]:
    found = _numbers(directory, senders)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and not all(
        each.acknowledged <= found[name].keys() for name, each in senders.items()
    ):
        time.sleep(0.5)
        before, found = found, _numbers(directory, senders)
        if found != before:
            until = time.monotonic() + PATIENCE
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
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-chaos-") as directory:
        counts = kill_receiving(
            Path(directory), given.source, given.kills, given.messages, given.seed
        )
    for name, count in counts.items():
        print(f"{name}: {count}")
    sys.exit(any(count.missing for count in counts.values()))


if __name__ == "__main__":
    main()
