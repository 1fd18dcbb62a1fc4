"""A standalone Spark cluster of two workers, each in a mount namespace of its own."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Self

import psutil
import pytest

import penstock
from penstock.core.java import spark_home
from servers.install import program, unavailable
from servers.server import Server, free_port

_MEMORY = "-Xmx256m"
_DISK = 64 << 20
_SOURCES = str(Path(penstock.__file__).parents[1])
"""The Penstock of the tests, which may be another one than the installed one."""
HOSTS = {"node-a": "127.0.0.2", "node-b": "127.0.0.3"}
"""The workers and their addresses. Executors of one address read the disk of each other."""


class _Daemon(Server):
    """A daemon of a standalone cluster on the loopback interface."""

    title = "Apache Spark, standalone"
    registered: str
    """The text in the log of a daemon that is ready."""
    variables: Mapping[str, str] = {}
    address = "127.0.0.1"

    def java(self, class_: str, *arguments: str, flags: Sequence[str] = ()) -> list[str]:
        """The command that starts a class of Spark."""
        jars = f"{spark_home()}/jars/*"
        java = program("java", "openjdk-17-jre-headless")
        flags = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", _MEMORY, *flags]
        return [java, *flags, "-cp", jars, class_, "--host", self.address, *arguments]

    def start(self) -> None:
        self.log.write_bytes(b"")
        super().start()

    def ready(self) -> None:
        if self.registered not in self.log.read_text(errors="replace"):
            raise RuntimeError("not registered yet")

    def environment(self) -> Mapping[str, str]:
        return {
            "SPARK_HOME": str(spark_home()),
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_LOCAL_IP": self.address,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            **self.variables,
        }


class _Master(_Daemon):
    name = "spark-master"
    registered = "I have been elected leader"

    def command(self) -> Sequence[str]:
        """The command of a master that recovers its applications when it is started again."""
        ports = ["--port", str(self.port), "--webui-port", "0"]
        recovery = {"Mode": "FILESYSTEM", "Directory": self.directory.path / "recovery"}
        flags = [f"-Dspark.deploy.recovery{name}={value}" for name, value in recovery.items()]
        return self.java("org.apache.spark.deploy.master.Master", *ports, flags=flags)


class Worker(_Daemon):
    name = "spark-worker"
    registered = "Successfully registered with master"

    def __init__(self, host: str, master: str, hidden: Path) -> None:
        super().__init__()
        self._host, self._master, self._hidden = host, master, hidden
        self.address = HOSTS[host]
        local = {"SPARK_LOCAL_DIRS": str(hidden / "local")}
        self.variables = {"PYTHONPATH": os.pathsep.join([str(hidden), _SOURCES]), **local}

    def executors(self) -> list[psutil.Process]:
        """The Java processes of executors that are alive."""
        try:
            children = psutil.Process(self.process.pid).children()
        except psutil.NoSuchProcess:
            return []
        return [child for child in children if child.status() != psutil.STATUS_ZOMBIE]

    def signal_executors(self, number: signal.Signals) -> None:
        """Sends a signal to the executors and their Python workers."""
        for executor in self.executors():
            for process in (executor, *executor.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(number)

    def fill_disk(self) -> None:
        """Leaves no space in the file system of `hidden`, where executors have their files."""
        with suppress(OSError), self.path("filler").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))

    def free_disk(self) -> None:
        """Ends the effect of `fill_disk`."""
        self.path("filler").unlink()

    def path(self, name: str) -> Path:
        """Returns the path by which other processes reach a file in the `hidden` of this worker."""
        return Path(f"/proc/{self.process.pid}/root{self._hidden}", name)

    def command(self) -> Sequence[str]:
        """The command of a worker on a host of this name, which has a `hidden` of its own."""
        sizes = ["--cores", "1", "--memory", "1g", "--webui-port", "0"]
        work = ["--work-dir", str(self.directory.path / "work")]
        class_ = "org.apache.spark.deploy.worker.Worker"
        java = shlex.join(self.java(class_, *sizes, *work, self._master))
        hidden = shlex.quote(str(self._hidden))
        script = (
            f"hostname {self._host} && mount -t tmpfs -o size={_DISK} tmpfs {hidden} && exec {java}"
        )
        return [*namespace(), "sh", "-c", script]


class SparkCluster:
    """A master and two workers of one core. Each worker has its own content of `hidden`.

    Its Python imports modules from there.
    """

    def __init__(self, hidden: Path) -> None:
        self.hidden = hidden
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.master = stack.enter_context(_Master(free_port()))
            self.url = f"spark://127.0.0.1:{self.master.port}"
            self.workers = {
                host: stack.enter_context(Worker(host, self.url, self.hidden)) for host in HOSTS
            }
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def daemons(self) -> Sequence[Server]:
        """The master and the workers."""
        return (self.master, *self.workers.values())


@cache
def namespace() -> tuple[str, ...]:
    """The command that runs another one in namespaces of its own for mounts and the host name."""
    for command in (("unshare", "-m", "-u"), ("unshare", "-r", "-m", "-u")):
        if subprocess.run([*command, "true"], capture_output=True).returncode == 0:
            return command
    return unavailable("no mount namespaces", "run as root, or permit unprivileged namespaces")


@pytest.fixture(scope="module")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A cluster for the tests of a module."""
    with SparkCluster(tmp_path_factory.mktemp("hidden")) as cluster:
        yield cluster
