"""A session starts by itself, says nothing on the terminal, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from penstock.core import java
from penstock.core.errors import PenstockError, UserError
from penstock.engine.spark_session.classcache import ArchiveDirectory, ClassCache
from penstock.engine.spark_session.session import session
from penstock.engine.spark_session.settings import SessionSettings
from penstock.engine.spark_session.shared import reusing
from penstock.engine.spark_session.warm import WarmPython
from penstock.engine.workers.scratch import Scratch

SOURCE = Path(java.__file__).parents[1]
MARK = "PENSTOCK_TEST_MARK"

CREATE = """
import sys
from pathlib import Path
from penstock.engine.spark_session.session import close, create
from penstock.engine.spark_session.settings import SessionSettings

spark = create(SessionSettings(master="local[2]", log_file=Path("spark.log")))
"""

STREAM = """
def stream(**trigger):
    rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).name("rates")
    rows = rates.load().mapInArrow(lambda batches: batches, "timestamp timestamp, value long")
    return (
        rows.writeStream.foreachBatch(lambda batch, number: print(batch.count(), flush=True))
        .trigger(**trigger)
        .start()
    )
"""

ARCHIVED = """
beans = spark._jvm.java.lang.management.ManagementFactory
print(any("SharedArchiveFile" in word for word in beans.getRuntimeMXBean().getInputArguments()))
"""

WORKERS = """
import pyarrow as pa

def facts(batches):
    import os, numpy, late_module
    for batch in batches:
        drawn = numpy.random.randint(1 << 62)
        fact = {"worker": os.getpid(), "drawn": drawn, "late": late_module.X}
        yield pa.RecordBatch.from_pylist([fact])

def fails(batches):
    for batch in batches:
        yield batch
        raise ValueError("with this message")

schema = "worker long, drawn long, late long"
spark.range(1).mapInArrow(lambda batches: batches, "id long").count()
Path("late/late_module.py").write_text("X = 42")
first, second = (spark.range(2).mapInArrow(facts, schema).collect() for _ in range(2))
print({row.late for row in first + second})
print(len({row.drawn for row in first + second}))
print({row.worker for row in first} == {row.worker for row in second})
try:
    spark.range(1).mapInArrow(fails, "id long").collect()
except Exception as error:
    print("in fails" in str(error), "with this message" in str(error))
"""

INTERRUPT = f"""
from penstock.engine.spark_session.classcache import await_build
from pyspark.errors import AnalysisException
try:
    spark.sql("SELECT nothing FROM range(3)")
except AnalysisException:
    print("caught")
stream(availableNow=True).awaitTermination()
print("until Ctrl-C")
try:
    stream(processingTime="10 milliseconds").awaitTermination()
except KeyboardInterrupt:
    print("alive", spark.range(3).count())
close()
await_build()
print("closed", flush=True)
input()
spark = create(SessionSettings(master="local[1]", log_file=Path("spark.log")))
{ARCHIVED}
print(spark._jvm.System.getProperty("java.io.tmpdir"))
stream(processingTime="100 milliseconds").awaitTermination()
"""


@dataclass
class Driver:
    """Scripts that run in a process of their own; whatever they start carries a mark."""

    directory: Path
    environment: dict[str, str]

    def start(self, *parts: str) -> subprocess.Popen[str]:
        script = self.directory / "driver.py"
        script.write_text("\n".join(parts), encoding="utf-8")
        return subprocess.Popen(
            [sys.executable, str(script)],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *parts: str) -> str:
        process = self.start(*parts)
        out, err = process.communicate(timeout=120)
        assert (process.returncode, err) == (0, "")
        return out

    def left(self, driver: int | None = None) -> list[list[str]]:
        """The processes that drivers started and that still run; not the class cache's.

        `driver` is the ID of a driver that runs.
        """
        found = []
        for process in psutil.process_iter():
            try:
                if process.pid != driver and process.environ().get(MARK) == self.environment[MARK]:
                    found.append(process.cmdline())
            except psutil.Error:
                continue
        return [words for words in found if words and not _makes_classes(words)]

    def end(self) -> None:
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == self.environment[MARK]:
                    process.kill()
            except psutil.Error:
                continue

    def wait_until_none_left(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self.left() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert self.left() == []


def _makes_classes(words: list[str]) -> bool:
    return "-Xshare:dump" in words or any(word.endswith("classcache.py") for word in words)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """Scripts that find no Java but the bundled one. Their cache of classes is empty at first."""
    directory = tmp_path_factory.mktemp("driver")
    (directory / "late").mkdir()
    paths = [str(SOURCE), os.environ.get("PYTHONPATH", ""), str(directory / "late")]
    environment = {
        **os.environ,
        MARK: uuid.uuid4().hex,
        "PYTHONPATH": os.pathsep.join(paths),
        "PATH": _path_without_java(directory / "bin"),
        "PENSTOCK_CACHE": str(directory / "cache"),
    }
    environment.pop("JAVA_HOME", None)
    driver = Driver(directory, environment)
    yield driver
    driver.end()


def _path_without_java(programs: Path) -> str:
    programs.mkdir()
    for directory in ("/bin", "/usr/bin"):
        for program in Path(directory).iterdir():
            link = programs / program.name
            if not program.name.startswith("java") and not link.exists():
                link.symlink_to(program)
    return str(programs)


@dataclass
class Sessions:
    """A script with two sessions: one that is interrupted as by a terminal, and one that is killed.

    `left` are the processes between the sessions, `running` those of the second one, and
    `temporary` is its temporary directory.
    """

    out: list[str]
    err: str
    children_in_its_group: bool
    left: list[list[str]]
    running: list[list[str]]
    temporary: Path


@pytest.fixture(scope="module")
def sessions(driver: Driver) -> Sessions:
    process = driver.start(CREATE, STREAM, ARCHIVED, WORKERS, INTERRUPT)
    assert process.stdin is not None and process.stdout is not None
    out: list[str] = []

    def read_until(*lines: str) -> None:
        assert process.stdout is not None
        while tuple(out[-len(lines) :]) != lines:
            out.append(process.stdout.readline().rstrip("\n"))
            assert out[-1] or process.poll() is None, process.communicate()

    read_until("until Ctrl-C", "5")
    group = os.getpgid(process.pid)
    groups = {os.getpgid(each.pid) for each in psutil.Process(process.pid).children()}
    process.send_signal(signal.SIGINT)
    read_until("closed")
    left = driver.left(process.pid)
    process.stdin.write("\n")
    process.stdin.flush()
    read_until("5")
    temporary, running = Path(out[-2]), driver.left()
    assert any(temporary.glob("blockmgr-*"))
    process.send_signal(signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    return Sessions(out, err, group in groups, left, running, temporary)


@pytest.mark.spark
def test_the_terminal_stays_empty_also_of_a_second_session(sessions: Sessions) -> None:
    assert (sessions.err, sessions.left) == ("", [])
    at = sessions.out.index("caught")
    assert sessions.out[at : at + 3] == ["caught", "5", "until Ctrl-C"]
    at = sessions.out.index("closed")
    assert sessions.out[at:] == ["closed", "True", str(sessions.temporary), "5"]


@pytest.mark.spark
def test_nothing_outlives_a_killed_driver(driver: Driver, sessions: Sessions) -> None:
    assert len(sessions.running) > 3
    driver.wait_until_none_left(3)
    deadline = time.monotonic() + 3
    while sessions.temporary.exists():
        assert time.monotonic() < deadline
        Scratch().close()


@pytest.mark.spark
def test_a_terminals_interrupt_reaches_the_driver_only(sessions: Sessions) -> None:
    assert not sessions.children_in_its_group
    assert "alive 3" in sessions.out


@pytest.mark.spark
def test_no_java_is_needed_and_workers_behave_as_started_ones_do(sessions: Sessions) -> None:
    assert sessions.out[1:5] == ["{42}", "4", "True", "True True"]


@pytest.mark.spark
def test_classes_are_cached(sessions: Sessions) -> None:
    used = sessions.out[0], sessions.out[sessions.out.index("closed") + 1]
    assert used == ("False", "True")


@pytest.mark.spark
def test_a_broken_cache_is_survived(driver: Driver, sessions: Sessions, tmp_path: Path) -> None:
    """The script ends with an open session."""
    assert "closed" in sessions.out
    (seal,) = (driver.directory / "cache").glob("classes/*/seal.json")
    room = ArchiveDirectory(seal.parent)
    whole, seen = room.archive.read_bytes(), room.archive.stat()
    middle = len(whole) // 2
    rotten = whole[:middle] + os.urandom(1 << 20) + whole[middle + (1 << 20) :]

    def put(content: bytes) -> None:
        room.archive.write_bytes(content)
        os.utime(room.archive, (seen.st_atime, seen.st_mtime))
        room.write_seal(streaming=True, class_path="")

    for damaged in (whole[:middle], b"\0" * len(whole)):
        put(damaged)
        flags = ClassCache(room, [], tmp_path).flags
        assert f"-XX:SharedArchiveFile={room.archive}" in flags
        machine = java.find("bundled").executable
        subprocess.run([machine, *flags, "-version"], check=True, timeout=60)
    put(rotten)
    assert driver.run(CREATE, "print(spark.range(3).count())") == "3\n"
    assert driver.left() == []


def test_a_missing_system_java_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError) as caught:
        java.find("system")
    assert caught.value.code == "java-not-found"


def _module(directory: Path, text: str) -> dict[str, str]:
    (directory / "probe.py").write_text(text, encoding="utf-8")
    return {**os.environ, "PYTHONPATH": str(directory), "PROBE": "set"}


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmPython]:
    """A warm process of a Python whose path has a space."""
    program = tmp_path_factory.mktemp("warm") / "my python"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", str(program))
        warm = WarmPython.start()
    with warm:
        yield warm


def test_a_warm_child_is_like_a_fresh_interpreter(tmp_path: Path, warm: WarmPython) -> None:
    probe = """
import json, os, sys
facts = [__name__, sys.argv[1:], os.environ["PROBE"], os.getcwd(), sys.path[:2], sys.stdin.read()]
print(json.dumps(facts))
print("aside", file=sys.stderr)
sys.exit(7)
"""
    environment = _module(tmp_path, probe)
    work = tmp_path / "a place"
    work.mkdir()
    runs = [
        subprocess.run(
            [program, "-m", "probe", "one", "two words"],
            input="in",
            capture_output=True,
            text=True,
            env=environment,
            cwd=work,
        )
        for program in (warm.launcher, sys.executable)
    ]
    assert runs[0].returncode == runs[1].returncode == 7
    assert runs[0].stdout == runs[1].stdout
    assert runs[0].stderr == runs[1].stderr == "aside\n"


def test_a_warm_child_has_the_modules_of_common_queries(tmp_path: Path, warm: WarmPython) -> None:
    """Each query starts such a process per source, and would import the modules again."""
    connectors = [
        f"penstock.connectors.{name}" for name in ("files", "generate", "kafka", "memory")
    ]
    modules = ["penstock.engine.sources.datasource", *connectors, "penstock.transforms.python"]
    probe = f"import sys\nbefore = {{*sys.modules}}\nimport {', '.join(modules)}\n"
    environment = _module(tmp_path, probe + "print(*sys.modules.keys() - before)")
    command = [warm.launcher, "-m", "probe"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.stdout, done.stderr, done.returncode) == ("\n", "", 0)


def test_a_warm_child_ends_with_its_launcher(tmp_path: Path, warm: WarmPython) -> None:
    text = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)"
    environment = _module(tmp_path, text)
    shadow = subprocess.Popen(
        [warm.launcher, "-m", "probe"], stdout=subprocess.PIPE, env=environment
    )
    assert shadow.stdout is not None
    child = int(shadow.stdout.readline())
    shadow.kill()
    shadow.wait()
    deadline = time.monotonic() + 5
    while psutil.pid_exists(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not psutil.pid_exists(child)


def test_the_end_of_the_warm_process(tmp_path: Path, warm: WarmPython) -> None:
    """Without the warm process the launcher is plain Python."""
    environment = _module(
        tmp_path, "import sys\nprint('warm' if 'pyspark' in sys.modules else 'plain')"
    )
    command = [warm.launcher, "-m", "probe"]
    for expected in ("warm\n", "plain\n"):
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert (done.stdout, done.returncode) == (expected, 0)
        os.kill(warm.pid, signal.SIGKILL)


@pytest.mark.spark
def test_a_running_spark_is_reused_on_request(penstock_spark: SparkSession) -> None:
    settings = SessionSettings(conf={"spark.sql.shuffle.partitions": "3"})
    with reusing(penstock_spark):
        with session(settings) as own:
            assert own.sparkContext is penstock_spark.sparkContext
            assert own.conf.get("spark.sql.shuffle.partitions") == "3"
        assert own.range(3).count() == 3, "it keeps running"
    assert penstock_spark.conf.get("spark.sql.shuffle.partitions") != "3"
    with pytest.raises(PenstockError) as caught, session(settings):
        pass
    assert caught.value.code == "session-running"
    assert penstock_spark.range(3).count() == 3, "the running session is not closed"


@pytest.mark.spark
def test_the_code_of_many_plans_is_generated_once(penstock_spark: SparkSession) -> None:
    session = penstock_spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", "true")
    session.conf.set("spark.sql.codegen.factoryMode", "CODEGEN_ONLY")
    java: Any = session._jvm
    compiled = java.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()

    def plan() -> int:
        before = int(compiled.getCount())
        for number in range(200):
            frame: Any = session.range(1).selectExpr(f"id + {number} AS number")._jdf
            frame.queryExecution().toRdd()
        return int(compiled.getCount()) - before

    assert plan() >= 200
    assert plan() == 0
