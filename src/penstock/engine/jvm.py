"""Starts the JVM that Spark's driver lives in, and hands PySpark the way to it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import IO, Literal, Self

from penstock.core.errors import PenstockError
from penstock.core.units import byte_count
from penstock.engine import java
from penstock.engine.classcache import ClassCache
from penstock.engine.java import Choice
from penstock.engine.scratch import Scratch

START_TIMEOUT = 120.0
STOP_TIMEOUT = 10.0
PORT, SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"

_THROWN = 'Exception in thread "main"'
_CRASHES = (-signal.SIGABRT, -signal.SIGBUS, -signal.SIGSEGV)
Length = Literal["seconds", "minutes", "endless"]
_COMPILERS: dict[Length, tuple[str, ...]] = {
    "seconds": ("-XX:TieredStopAtLevel=1",),
    "minutes": (
        "-XX:Tier3InvocationThreshold=1000",
        "-XX:Tier3MinInvocationThreshold=500",
        "-XX:Tier3CompileThreshold=10000",
        "-XX:Tier3BackEdgeThreshold=100000",
        "-XX:Tier4InvocationThreshold=200000",
        "-XX:Tier4MinInvocationThreshold=100000",
        "-XX:Tier4CompileThreshold=500000",
        "-XX:Tier4BackEdgeThreshold=5000000",
    ),
    "endless": (),
}
"""Only the quick compiler; the thorough one for what is still running after millions of rows;
Java's own balance."""
_SMALL_HEAP = 4 * 2**30
"""Up to here one thread collects garbage at a fifth less CPU than G1, in pauses of milliseconds."""
_LOG4J = """\
status = off
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
logger.trigger.name = org.apache.spark.sql.execution.streaming.runtime.ProcessingTimeExecutor
logger.trigger.level = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {file}
appender.file.filePattern = {file}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss.SSSX}}{{UTC}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


@dataclass(frozen=True)
class JvmOptions:
    """How the JVM is started; `conf` is what Spark must know before there is a session, and
    `length` how long it is going to be busy.
    """

    conf: Mapping[str, str] = field(default_factory=dict)
    java: Choice = "bundled"
    heap: str = "1g"
    length: Length = "seconds"
    log_file: Path | None = None
    master: str = "local[2,4]"


class Jvm:
    """A JVM that waits for PySpark; it ends with the process that started it.

    Its output and Spark's log go to the log file, or nowhere; a signal of the terminal does not
    reach it.
    """

    def __init__(self, options: JvmOptions, environment: Mapping[str, str] | None = None) -> None:
        """Launches without waiting; `environment` is added to that of this process."""
        self._java = java.find(options.java)
        self._scratch = Scratch()
        self._log = (options.log_file or self._scratch.path / "spark.log").absolute()
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._connection = self._scratch.path / "gateway"
        self._log_start = self._log.stat().st_size if self._log.exists() else 0
        self._options = options
        self._extra_environment = dict(environment or {})
        self._cache: ClassCache | None = None
        self._process = self._launch()

    @classmethod
    def start(cls, options: JvmOptions) -> Jvm:
        """A JVM that is up, with the way to it in `os.environ` for PySpark to find."""
        jvm = cls(options)
        os.environ.update(jvm.gateway())
        return jvm

    def gateway(self) -> dict[str, str]:
        """The environment variables that PySpark reads; waits until the JVM is up."""
        deadline = time.monotonic() + START_TIMEOUT
        while not self._connection.exists():
            if self._process.poll() is not None:
                if self._cache is None or not self._cache.discard():
                    raise self._failed("Java could not be started")
                self._process = self._launch()
            if time.monotonic() > deadline:
                raise self._failed("Java did not answer in time")
            time.sleep(0.01)
        answer = self._connection.read_bytes()
        port, length = int.from_bytes(answer[:4]), int.from_bytes(answer[4:8])
        self._connection.unlink()
        return {PORT: str(port), SECRET: answer[8 : 8 + length].decode()}

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """Lets the JVM end by itself, then kills it; may be called twice.

        After a first run a process of its own goes on for some seconds to make the class cache.
        """
        _close(self._process.stdin)
        try:
            status = self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._kill()
            status = -signal.SIGKILL
        if self._cache is not None:
            if status in _CRASHES:
                self._cache.discard()
            if status == 0:
                self._cache.learn()
            self._cache = None
        self._scratch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _launch(self) -> subprocess.Popen[bytes]:
        options, home = self._options, spark_home()
        class_path = _class_path(home, options.conf)
        heap = options.conf.get("spark.driver.memory", options.heap)
        machine = [f"-Xmx{heap}", *_COMPILERS[options.length]]
        machine.append(f"-XX:+Use{'Serial' if byte_count(heap) < _SMALL_HEAP else 'G1'}GC")
        machine += self._java.spark_flags()
        machine += shlex.split(options.conf.get("spark.driver.defaultJavaOptions", ""))
        machine += shlex.split(options.conf.get("spark.driver.extraJavaOptions", ""))
        self._cache = ClassCache.open(self._java, class_path, machine, self._scratch.path)
        log4j = self._scratch.path / "log4j2.properties"
        log4j.write_text(_LOG4J.format(file=self._log.as_posix()), encoding="utf-8")
        settings = self._scratch.path / "spark.properties"
        settings.touch(mode=0o600)
        settings.write_text(_properties(options, self._scratch.path), encoding="utf-8")
        command = [
            str(self._java.executable),
            *machine,
            *(self._cache.flags if self._cache else ()),
            f"-Dlog4j2.configurationFile={log4j.as_uri()}",
            "-cp",
            os.pathsep.join(map(str, class_path)),
            "org.apache.spark.deploy.SparkSubmit",
            "--properties-file",
            str(settings),
            "--load-spark-defaults",
            "pyspark-shell",
        ]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=self._environment(home),
                start_new_session=True,
                pass_fds=(self._scratch.lock,),
            )

    def _environment(self, home: Path) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k not in (PORT, SECRET)}
        if self._options.master.startswith("local"):
            kept.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            kept.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
        return {
            **kept,
            **self._extra_environment,
            "SPARK_HOME": str(home),
            "SPARK_CONNECT_MODE": "0",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._connection),
        }

    def _failed(self, message: str) -> PenstockError:
        self._kill()
        self._cache = None
        with self._log.open("rb") as log:
            log.seek(self._log_start)
            said = log.read().decode(errors="replace").strip().splitlines()
        self._scratch.close()
        thrown = [line.split(": ", 1)[-1] for line in said if line.startswith(_THROWN)]
        detail = "\n".join(thrown[-1:] or said[-20:])
        return PenstockError(message, code="java-not-started", detail=detail or None)

    def _kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        _close(self._process.stdin)


def spark_home() -> Path:
    """Where PySpark is installed, found without importing it."""
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise PenstockError("PySpark is not installed", code="no-pyspark")
    return Path(next(iter(spec.submodule_search_locations)))


def _class_path(home: Path, conf: Mapping[str, str]) -> list[Path]:
    """As Spark's own launcher has it: the user's, the configuration directories, Spark's jars."""
    named = [os.environ.get("SPARK_CONF_DIR", str(home / "conf"))]
    named += [os.environ.get(name, "") for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR")]
    extra = conf.get("spark.driver.extraClassPath", "").split(os.pathsep)
    directories = [Path(each) for each in named if each and Path(each).is_dir()]
    return [
        *(Path(each) for each in extra if each),
        *directories,
        *sorted((home / "jars").glob("*.jar")),
    ]


def _properties(options: JvmOptions, scratch: Path) -> str:
    """The settings in Java's notation: in a file, since a command line shows secrets to all."""
    ours = {"spark.master": options.master, "spark.sql.warehouse.dir": str(scratch / "warehouse")}
    conf = {**ours, **options.conf}
    return "".join(f"{_escape(key)}={_escape(value)}\n" for key, value in conf.items())


def _escape(text: str) -> str:
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return "".join(named.get(c, "\\" + c if c in "\\=:# !" else c) for c in text)


def _close(pipe: IO[bytes] | None) -> None:
    if pipe is not None:
        try:
            pipe.close()
        except OSError:
            return
