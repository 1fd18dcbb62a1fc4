"""Sharing: settings and modules that fit, and the loop of a host."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock import app
from penstock.cli.share_host import SharedRuns
from penstock.core.errors import PenstockError, UserError
from penstock.engine.spark_session import session as session_module
from penstock.engine.spark_session.session import session
from penstock.engine.spark_session.settings import SessionSettings
from penstock.engine.spark_session.shared import sharing
from penstock.runtime.sharing import host as host_module
from penstock.runtime.sharing import spark
from penstock.runtime.sharing.directory import HostDirectory, Request, RunEnd
from penstock.runtime.sharing.host import Host
from penstock.runtime.sharing.modules import LoadedModules
from penstock.runtime.sharing.spark import SharedSpark, differences
from penstock.runtime.state.directory import StateDirectory
from penstock.spec.runtime_models import Runtime

PARTITIONS = "spark.sql.shuffle.partitions"
PIPELINE = """
name: a
sources: {rows: {type: generate, fields: {id: sequence}}}
sinks: {out: {type: blackhole, from: rows}}
"""


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({}, {"memory": "2g"}, {"runtime.memory": ("2g", "auto")}),
        ({"master": "local[2]"}, {}, {"runtime.master": ("local[*]", "local[2]")}),
        ({}, {"packages": ["a:b:1"]}, {"runtime.packages": ("a:b:1", "not set")}),
        ({}, {"java": "system"}, {"runtime.java": ("system", "bundled")}),
        (
            {"spark": {"spark.scheduler.mode": "FIFO"}},
            {},
            {"runtime.spark.spark.scheduler.mode": ("not set", "FIFO")},
        ),
        (
            {},
            {"spark": {"spark.sql.extensions": "x.Y"}},
            {"runtime.spark.spark.sql.extensions": ("x.Y", "not set")},
        ),
        (
            {"spark": {"spark.hadoop.secret.key": "first"}},
            {"spark": {"spark.hadoop.secret.key": "second"}},
            {"runtime.spark.spark.hadoop.secret.key": ("another value", "another value")},
        ),
        (
            {"spark": {"spark.driver.extraJavaOptions": "-Djavax.net.ssl.trustStorePassword=x"}},
            {},
            {"runtime.spark.spark.driver.extraJavaOptions": ("not set", "another value")},
        ),
        ({"spark": {PARTITIONS: 3}}, {"spark": {PARTITIONS: 5}, "trigger": "1s"}, {}),
        ({"partitions": 3}, {"state": "elsewhere", "state_store": "rocksdb"}, {}),
    ],
)
def test_settings_of_the_jvm_are_equal(
    first: dict[str, object], second: dict[str, object], expected: dict[str, tuple[str, str]]
) -> None:
    found = differences(Runtime.model_validate(second), Runtime.model_validate(first))
    assert found == expected


def test_another_setting_is_an_error_with_both_values(tmp_path: Path) -> None:
    spark = SharedSpark("team", tmp_path / "spark.log")
    small, large = Runtime(memory="1g"), Runtime(memory="2g")
    with spark.used(small, "a"):
        with pytest.raises(UserError) as caught, spark.used(large, "b"):
            pass
        assert caught.value.code == "share-conflict"
        assert caught.value.message == ('runtime.memory is 2g, and in the share "team" it is 1g')
    with spark.used(large, "b"):
        """The first pipeline ended before it started Spark."""


def test_settings_of_the_first_session_are_not_those_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark gives the settings of its start to each new session."""
    created: list[SessionSettings] = []

    def create(settings: SessionSettings) -> Any:
        created.append(settings)
        return FakeSpark(settings.conf)

    monkeypatch.setattr(spark, "create", create)
    monkeypatch.setattr(spark, "is_alive", lambda: True)
    conf = {"spark.sql.caseSensitive": "true", PARTITIONS: "3", "spark.hadoop.a": "b"}
    shared, first = SharedSpark("team", tmp_path / "spark.log"), SessionSettings(conf=conf)
    with shared.used(Runtime(), "a"), session(first) as found:
        assert cast(Any, found).conf.values["spark.sql.caseSensitive"] == "true"
    with shared.used(Runtime(), "b"), session(SessionSettings()) as found:
        assert "spark.sql.caseSensitive" not in cast(Any, found).conf.values
    (settings,) = created
    assert settings.conf == {"spark.hadoop.a": "b", "spark.scheduler.mode": "FAIR"}
    assert settings.length == "endless"


class FakeSpark:
    """A session, which inherits the settings of the start of Spark."""

    sparkContext = SimpleNamespace(setLocalProperty=lambda name, value: None)

    def __init__(self, start: Mapping[str, str]) -> None:
        self._start, values = start, dict(start)
        self.conf = SimpleNamespace(
            isModifiable=lambda name: name.startswith("spark.sql."),
            set=values.__setitem__, values=values,
        )  # fmt: skip

    def newSession(self) -> FakeSpark:
        return FakeSpark(self._start)


def test_an_end_of_the_jvm_is_the_error_of_each_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = SimpleNamespace(alive=True, has_ended=lambda error: True, close=lambda: None)
    monkeypatch.setattr(session_module, "_running", running)
    settings = SessionSettings(log_file=tmp_path / "spark.log")
    with (
        pytest.raises(PenstockError) as caught,
        sharing(cast(Any, lambda settings: FakeSpark({}))),
        session(settings),
    ):
        raise ConnectionError("closed")
    assert caught.value.code == "java-ended"


def test_a_module_has_one_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "pack").mkdir(parents=True)
        (tmp_path / name / "pack" / "__init__.py").write_text("")
        (tmp_path / name / "pack" / "prices.py").write_text("x = 1")
    modules = LoadedModules("team")
    first = tmp_path / "a" / "pack" / "prices.py"
    assert modules.add([first])
    assert modules.add([first])
    with pytest.raises(UserError, match=r'"pack\.prices"') as caught:
        modules.add([tmp_path / "b" / "pack" / "prices.py"])
    assert caught.value.code == "share-conflict"
    first.write_text("x = 2")
    assert not modules.add([first])


class Recorded:
    """Runs that end when they are stopped."""

    broken = False

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.ends: dict[str, RunEnd] = {}
        self.cancelled: list[str] = []
        self.stopped = threading.Event()

    def perform(self, request: Request) -> RunEnd:
        self.requests.append(request)
        if request.run not in self.ends:
            self.stopped.wait(60)
        return self.ends.get(request.run, RunEnd(0))

    def cancel(self, run: str) -> None:
        self.cancelled.append(run)

    def stop(self) -> None:
        self.stopped.set()


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[tuple[HostDirectory, Host, Recorded]]:
    directory = HostDirectory(tmp_path / "host")
    pipe, runs = directory.create(), Recorded()
    yield directory, Host(directory, pipe, runs), runs
    os.close(pipe)


Hosted = tuple[HostDirectory, Host, Recorded]


def test_a_cancelled_start_ends_without_its_thread(hosted: Hosted) -> None:
    """The thread of the start does not keep the host running, and writes no end afterwards."""
    directory, host, runs = hosted
    assert directory.send(Request("one", "a.yaml", "log"))
    serving = threading.Thread(target=host.serve)
    serving.start()
    directory.cancel("one")
    serving.join(60)
    assert not serving.is_alive()
    assert runs.cancelled == ["one"]
    assert directory.end_of("one") == RunEnd(exit_code=1)
    directory.forget("one")
    (thread,) = [each for each in threading.enumerate() if each.name == "run-one"]
    runs.stop()
    thread.join(60)
    assert not directory.has("one") and not directory.is_cancelled("one")
    directory.remove_if_unused()
    assert not directory.root.exists()


def test_a_cancelled_start_does_not_use_spark(tmp_path: Path) -> None:
    """Its thread may continue after the cancellation, when another process runs the pipeline."""
    file = tmp_path / "a.yaml"
    file.write_text(PIPELINE)
    runs = SharedRuns("team", tmp_path / "spark.log")
    runs.cancel("one")
    end = runs.perform(Request("one", str(file), str(tmp_path / "log")))
    assert end == RunEnd(exit_code=0)
    assert StateDirectory(app.plan(file).state).owner() is None
    assert not (tmp_path / "spark.log").exists()


@pytest.mark.slow
def test_a_host_ends_after_its_last_run(hosted: Hosted) -> None:
    directory, host, runs = hosted
    secret = {"PENSTOCK_CONNECTIONS": "s3cret" * 30_000}
    serving = threading.Thread(target=host.serve)
    assert directory.send(Request("one", "a.yaml", "log"))
    serving.start()
    assert directory.send(Request("two", "b.yaml", "log", fresh=True, variables=secret))
    assert directory.end_of("one") is None and directory.has("one")
    host.request_stop()
    serving.join(60)
    assert runs.requests == [
        Request("one", "a.yaml", "log"), Request("two", "b.yaml", "log", True, secret)
    ]  # fmt: skip
    assert directory.end_of("two") == RunEnd(0)
    assert not directory.send(Request("three", "c.yaml", "log"))
    assert not directory.has("three")
    left = [path.read_text() for path in directory.root.rglob("*") if path.is_file()]
    assert left and not any("s3cret" in text for text in left)


@pytest.mark.slow
def test_a_host_awaits_its_first_request(hosted: Hosted, monkeypatch: pytest.MonkeyPatch) -> None:
    directory, host, runs = hosted
    rounds, requests = threading.Semaphore(0), host._requests

    def counted() -> Iterator[Request]:
        rounds.release()
        return requests()

    monkeypatch.setattr(host, "_requests", counted)
    runs.ends["one"] = RunEnd(0)
    serving = threading.Thread(target=host.serve)
    serving.start()
    for _ in range(3):
        while not rounds.acquire(timeout=0.05):
            assert serving.is_alive(), "the host has ended"
    assert directory.send(Request("one", "a.yaml", "log"))
    serving.join(60)
    assert not serving.is_alive() and directory.end_of("one") == RunEnd(0)


@pytest.mark.slow
def test_a_host_without_requests_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "FIRST_SECONDS", 0)
    directory = HostDirectory(tmp_path / "host")
    pipe = directory.create()
    Host(directory, pipe, Recorded()).serve()
    assert not directory.send(Request("one", "a.yaml", "log"))
    os.close(pipe)


@pytest.mark.slow
def test_an_end_is_recorded_once_the_disk_has_space(
    hosted: Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, host, runs = hosted
    runs.ends["one"] = RunEnd(3)
    attempts, end = iter((True, True, False)), directory.end

    def end_unless_full(run: str, found: RunEnd) -> None:
        if next(attempts):
            raise OSError(errno.ENOSPC, "No space left on device")
        end(run, found)

    monkeypatch.setattr(directory, "end", end_unless_full)
    assert directory.send(Request("one", "a.yaml", "log"))
    host.serve()
    assert directory.end_of("one") == RunEnd(3)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="the size of pipes is fixed")
def test_a_large_request_before_the_host_reads(hosted: Hosted) -> None:
    directory, host, runs = hosted
    runs.ends["one"] = RunEnd(0)
    request = Request("one", "a.yaml", "log", variables={"PENSTOCK_CONNECTIONS": "x" * 500_000})
    assert directory.send(request)
    host.serve()
    assert runs.requests == [request]


@pytest.mark.quick(1)
@pytest.mark.parametrize("reason", ["broken", "needs_new_host"])
def test_no_run_joins_a_host_that_is_about_to_end(hosted: Hosted, reason: str) -> None:
    directory, host, runs = hosted
    assert directory.send(Request("one", "a.yaml", "log"))
    serving = threading.Thread(target=host.serve)
    serving.start()
    if reason == "broken":
        runs.broken = True
    else:
        runs.ends["two"] = RunEnd(needs_new_host=True)
        assert directory.send(Request("two", "b.yaml", "log"))
    while (directory.root / "requests").exists():
        assert serving.is_alive()
        serving.join(0.01)
    assert directory.end_of("one") is None
    assert not directory.send(Request("three", "c.yaml", "log"))
    runs.stop()
    serving.join(60)
    assert directory.end_of("one") == RunEnd(0)


@pytest.mark.slow
def test_a_request_that_comes_before_the_end_is_served(hosted: Hosted) -> None:
    directory, host, runs = hosted
    runs.ends |= {"one": RunEnd(3), "two": RunEnd(0)}
    assert directory.send(Request("one", "a.yaml", "log"))
    assert directory.send(Request("two", "a.yaml", "log"))
    host.serve()
    assert directory.end_of("one") == RunEnd(3)
    assert directory.end_of("two") == RunEnd(0)
    directory.remove_if_unused()
    assert directory.root.exists()
    for run in ("one", "two"):
        directory.forget(run)
    directory.remove_if_unused()
    assert not directory.root.exists()


def test_a_pipe_with_a_request_is_not_closed(tmp_path: Path) -> None:
    directory = HostDirectory(tmp_path / "host")
    pipe = directory.create()
    assert directory.send(Request("one", "a.yaml", "log"))
    assert not directory.close(pipe)
    assert directory.send(Request("two", "b.yaml", "log"))
    os.read(pipe, 65536)
    assert directory.close(pipe)
    assert not directory.send(Request("three", "c.yaml", "log"))
    os.close(pipe)
