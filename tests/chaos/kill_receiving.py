"""Kills a run that receives again and again, and counts what was acknowledged and is not there.

    python tests/chaos/kill_receiving.py SOURCE [--kills N] [--messages N] [--seed N]

SOURCE is http, mqtt, rabbitmq or jetstream. Senders send messages with numbers for as long as the
run is killed, at random all of its processes, the driver or the receiver alone, and started again.
What they were told is safe must be in the files that the run writes; what is there more than once
is counted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from senders import Sender, sender
from victim import Victim

PATIENCE = 120.0
"""Seconds without anything new after which what is missing is lost."""
PIPELINE = """\
name: received
runtime: {{state: state, restart: {{attempts: 100, backoff: 200ms..1s}}}}
sources:
  in:
{source}
    format: json
    schema: number BIGINT
sinks:
  out: {{type: files, from: in, path: out, format: json}}
"""


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


def kill_receiving(directory: Path, source: str, kills: int, messages: int, seed: int) -> Count:
    """Kills a run so often while it receives so many messages."""
    dice = random.Random(seed)
    with ExitStack() as stack:
        sending = stack.enter_context(sender(source))
        options = "\n".join(f"    {line}" for line in sending.options)
        (directory / "pipeline.yaml").write_text(PIPELINE.format(source=options))
        victim = Victim(directory)
        stack.callback(victim.kill_all)
        process = victim.run()
        thread = threading.Thread(target=sending.send, args=(range(messages),), daemon=True)
        thread.start()
        for number in range(kills):
            share = messages * (number + dice.random()) / kills
            while len(sending.acknowledged) < share:
                assert process.poll() is None, victim.log()[-3000:]
                time.sleep(0.02)
            process = _killed(victim, process, dice)
        thread.join()
        return _counted(directory, victim, sending, process)


def _killed(victim: Victim, process: object, dice: random.Random) -> object:
    """One kill. Returns the run that goes on."""
    receivers = [p for p in victim.processes() if "penstock.runtime.receive" in p.cmdline()]
    if receivers and dice.random() < 0.3:
        receivers[0].send_signal(signal.SIGKILL)
        print("killed the receiver", flush=True)
        return process
    print("killed", victim.kill(process, dice), flush=True)  # type: ignore[arg-type]
    return victim.run()


def _counted(directory: Path, victim: Victim, sending: Sender, process: object) -> Count:
    found = _numbers(directory)
    until = time.monotonic() + PATIENCE
    while not sending.acknowledged <= {*found} and time.monotonic() < until:
        time.sleep(0.5)
        now = _numbers(directory)
        if len(now) > len(found):
            until = time.monotonic() + PATIENCE
        found = now
    os.kill(process.pid, signal.SIGTERM)  # type: ignore[attr-defined]
    victim.ends(process)  # type: ignore[arg-type]
    found = _numbers(directory)
    missing = sending.acknowledged - {*found}
    return Count(len(sending.acknowledged), len(missing), len(found) - len({*found}))


def _numbers(directory: Path) -> list[int]:
    files = (directory / "out").rglob("*.json*")
    lines = (line for file in files if file.name[0] not in "._" for line in file.open())
    return [json.loads(line)["number"] for line in lines if line.endswith("}\n")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-chaos-") as directory:
        count = kill_receiving(
            Path(directory), given.source, given.kills, given.messages, given.seed
        )
    print(count)
    sys.exit(count.missing > 0)


if __name__ == "__main__":
    main()
