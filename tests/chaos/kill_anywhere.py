"""Kills a run again and again, lets it end, and counts: nothing lost, nothing twice.

    python tests/chaos/kill_anywhere.py [--kills N] [--records N] [--seed N] [--moments]
        [--from files|kafka] [--to files|kafka|both] [--delivery exactly_once|at_least_once]
        [--broker-kills N]

The run is a `penstock run` through a stateless and a windowed branch, with bad records of every
kind on the way (see readings.py). It is killed by SIGKILL, at random either the driver alone or
all processes at once, and started again; with `--moments` it is also killed once at each of the
moments of moments.py. The test suite has these runs in its own process (see deaths.py), and its
last runs, too. With Kafka at one end the broker is killed, too, and started again some seconds
later: the run has to live through it, or is killed in the meantime.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

sys.path.append(str(Path(__file__).parents[1]))

from deaths import run_until_killed
from feeder import Feeder
from moments import (
    BEFORE_THE_LEDGER,
    BETWEEN_SINKS,
    MOMENTS,
    WITHIN_A_COMMIT,
    WITHIN_A_FILE,
    changes_watched,
    tear_commit,
    tear_files,
)
from places import PARTITIONS, Both, Files, Input, Output, Topics
from pyspark.sql import SparkSession
from readings import PIPELINE, closing_readings, make_readings
from rich.console import Console
from rich.table import Table
from tally import Tally, assert_in_order, assert_tidy, tallies
from victim import LONGEST, Victim

from penstock import app
from penstock.app import RunOptions
from penstock.runtime.run_options import Until
from servers.kafka import Kafka

From = Literal["files", "kafka"]
To = Literal["files", "kafka", "both"]
Delivery = Literal["exactly_once", "at_least_once"]
TEARS = {WITHIN_A_FILE: tear_files, WITHIN_A_COMMIT: tear_commit}
"""The effects of kills within writes of workers and of Java, by moment."""


@dataclass
class Trial:
    """A pipeline between two places, of which Kafka's broker is killed, too."""

    victim: Victim
    feeder: Feeder
    dice: random.Random
    broker: Kafka | None = None
    spark: SparkSession | None = None
    _starting: list[threading.Timer] = field(default_factory=list)

    @property
    def _file(self) -> Path:
        return self.victim.directory / "pipeline.yaml"

    def kill_between_sinks(self) -> str:
        """One run in `spark`, killed some batches after a kill of the broker.

        Both are killed between the commits of two sinks. The run lives through the broker's kill.
        """
        assert self.spark is not None
        self.settle()
        self.feeder.go_on()
        with changes_watched(BETWEEN_SINKS, self._restart_broker):
            moment = replace(BETWEEN_SINKS, nth=3)
            assert run_until_killed(self._file, moment, self.spark), "not killed between sinks"
        return "between two sinks, after the broker was away"

    def _restart_broker(self) -> None:
        assert self.broker is not None
        self.broker.kill()
        self._starting.append(threading.Timer(self.dice.uniform(1, 3), self.broker.start))
        self._starting[-1].start()

    def kill_at_random(self, broker: bool = False) -> str:
        """One run, killed while it starts or some batches later, unless it ends before.

        The broker is killed first: the run lives through that, or is killed while there is none.
        """
        process = self.victim.run()
        self.feeder.go_on()
        batches = self.victim.lives(process, self.dice)
        circumstance = f"after {batches} batches"
        if broker and process.poll() is None:
            circumstance = self._kill_broker(process)
        if process.poll() is not None:
            self.victim.ends(process)
            return "it had ended"
        return f"{self.victim.kill(process, self.dice)} {circumstance}"

    def _kill_broker(self, process: subprocess.Popen[bytes]) -> str:
        assert self.broker is not None
        self.settle()
        seconds = self.dice.uniform(1, 6)
        self.broker.kill()
        circumstance = f"the broker was away for {seconds:.1f} s"
        if self.dice.random() < 0.5:
            time.sleep(seconds)
            self.broker.start()
            return f"{self.victim.lives(process, self.dice, least=1)} batches after {circumstance}"
        self._starting.append(threading.Timer(seconds, self.broker.start))
        self._starting[-1].start()
        time.sleep(self.dice.uniform(0, seconds))
        return f"while {circumstance}"

    def kill_at_moment(self, moment: str) -> str:
        """One run, killed at a moment; in `spark` if there is one.

        There its writes are complete, and torn after the kill.
        """
        if self.spark is not None:
            at = BEFORE_THE_LEDGER if moment == WITHIN_A_FILE else MOMENTS[moment]
            assert run_until_killed(self._file, at, self.spark), f"not killed {moment}"
            if moment in TEARS:
                TEARS[moment](self.victim.directory)
            return moment
        program = Path(__file__).with_name("moments.py")
        process = self.victim.start(str(program), moment, "pipeline.yaml")
        code = process.wait(LONGEST)
        if code != -signal.SIGKILL:
            raise AssertionError(f"not killed {moment}; code {code}:\n{self.victim.log()[-3000:]}")
        return f"{self.victim.finish_off(self.dice)} {moment}"

    def end(self, until: Until = "auto") -> None:
        """Runs to the end, which must be a good one; in `spark` if there is one."""
        if self.spark is not None:
            options = RunOptions(until=until)
            outcome = app.run(self._file, spark=self.spark.newSession(), options=options)
            assert not outcome.errors, outcome
        else:
            words = ["--until-caught-up"] if until == "caught_up" else []
            self.victim.ends(self.victim.run(*words))

    def settle(self) -> None:
        """The broker is there."""
        for each in self._starting:
            each.join()
        self._starting.clear()


def kill_anywhere(
    directory: Path,
    kills: int,
    records: int,
    seed: int,
    moments: Sequence[str] = (),
    *,
    source: From = "files",
    sink: To = "files",
    delivery: Delivery = "exactly_once",
    broker_kills: int = 0,
    broker: Kafka | None = None,
    spark: SparkSession | None = None,
) -> list[Tally]:
    """Kills a run of so many records so many times, and checks what it leaves in the end.

    Without a `broker` the runs get their own. With a broker and `spark` the last kill is in this
    process. Raises AssertionError.
    """
    with ExitStack() as stack:
        files = Files(directory, records)
        inputs: dict[From, Input] = {"files": files}
        outputs: dict[To, Output] = {"files": files}
        if {source, sink} != {"files"}:
            broker = broker or stack.enter_context(Kafka())
            inputs["kafka"] = outputs["kafka"] = topics = Topics(broker, delivery)
            outputs["both"] = Both(files, topics)
        from_, to = inputs[source], outputs[sink]
        failing, most = max(3, records // 50_000), records // 40 * (2 if moments else 5)
        readings, expected = make_readings(records, seed, failing, from_.place, to.unwritable)
        sinks = {name: to.sink(name) for name in ("shares", "notes", "minutes")}
        delay = "1 minute" if source == "files" else "10 minutes"
        text = PIPELINE.format(source=from_.source(most), delay=delay, **sinks)
        (directory / "pipeline.yaml").write_text(text)
        victim = Victim(directory)
        stack.callback(victim.kill_all)
        feeder = Feeder(from_, readings, kills if source == "kafka" else 0)
        trial = Trial(victim, feeder, random.Random(seed), broker, spark)
        stack.callback(trial.settle)
        for moment in moments:
            _report(victim, trial.kill_at_moment(moment))
        with_broker = trial.dice.sample(range(kills), broker_kills)
        for number in range(kills):
            if number == kills - 1 and number in with_broker and spark is not None:
                _report(victim, trial.kill_between_sinks())
            elif not victim.complete():
                _report(victim, trial.kill_at_random(broker=number in with_broker))
        trial.settle()
        if isinstance(from_, Topics):
            feeder.rest()
            trial.end("caught_up")
            from_.put(closing_readings(records, PARTITIONS, expected), records)
            trial.end("caught_up")
            assert from_.lag() == 0, f"the group is {from_.lag()} behind"
        elif not victim.complete():
            trial.end()
        found = tallies(directory, to, expected)
        _show(found)
        for each in found:
            each.judge(repeats=sink != "files" and delivery == "at_least_once")
        if sink != "files":
            assert_in_order(to, from_)
        assert_tidy(directory)
        assert not (left := victim.left()), f"processes are left: {left}"
        assert "Traceback" not in victim.log()
        return found


def _report(victim: Victim, killed: str) -> None:
    batches = victim.commits()
    print(f"{time.strftime('%X')} killed {killed} ({batches} batches committed)", flush=True)


def _show(found: Sequence[Tally]) -> None:
    table = Table("", "expected", "found", "lost", "repeated")
    for each in found:
        table.add_row(*each.counts())
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=10, help="at random moments")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1000))
    parser.add_argument("--moments", action="store_true", help="also at each named moment")
    parser.add_argument("--from", dest="source", choices=get_args(From), default="files")
    parser.add_argument("--to", dest="sink", choices=get_args(To), default="files")
    parser.add_argument("--delivery", choices=get_args(Delivery), default="exactly_once")
    parser.add_argument("--broker-kills", type=int, help="of those; 2 with Kafka at an end")
    given = parser.parse_args()
    kafka = {given.source, given.sink} != {"files"}
    if given.moments and kafka:
        parser.error("the moments are those of files")
    broker_kills = given.broker_kills if given.broker_kills is not None else 2 * kafka
    scratch = Path(tempfile.mkdtemp(prefix="kill-"))
    print(f"seed {given.seed}, in {scratch}", flush=True)
    began = time.monotonic()
    try:
        kill_anywhere(
            scratch, given.kills, given.records, given.seed,
            list(MOMENTS) if given.moments else (),
            source=given.source, sink=given.sink, delivery=given.delivery,
            broker_kills=broker_kills,
        )  # fmt: skip
    except AssertionError as error:
        raise SystemExit(f"wrong: {error}") from None
    shutil.rmtree(scratch)
    print(f"nothing lost, nothing that should not be there ({time.monotonic() - began:.0f} s)")


if __name__ == "__main__":
    main()
