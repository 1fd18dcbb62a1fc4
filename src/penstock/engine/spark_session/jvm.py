"""JVM of Spark's driver: started here, and connected to PySpark."""

from __future__ import annotations

import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Literal, Self

from penstock.core import java
from penstock.core.errors import PenstockError
from penstock.core.files.private_files import create_directory, open_private
from penstock.core.java import Choice, spark_home
from penstock.core.units import byte_count
from penstock.engine.spark_session.classcache import ClassCache
from penstock.engine.spark_session.descriptors import require_descriptors
from penstock.engine.spark_session.java_flags import (
    LATE,
    QUICK,
    heap_flags,
    idle_flags,
    spark_flags,
)
from penstock.engine.spark_session.jvm_log import log_settings
from penstock.engine.workers.scratch import Scratch

START_TIMEOUT = 120.0
STOP_TIMEOUT = 10.0
PORT, SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"

_THROWN = 'Exception in thread "main"', "Caused by: "
_CRASHES = (-signal.SIGABRT, -signal.SIGBUS, -signal.SIGSEGV)
Length = Literal["seconds", "minutes", "endless"]
_COMPILERS: dict[Length, tuple[str, ...]] = {
    "seconds": (QUICK, "-XX:ReservedCodeCacheSize=240m"),
    "minutes": LATE,
    "endless": (),
}
"""Only the C1 compiler; C2 after millions of rows; the defaults of Java.

With C1 alone Java reserves 48 MiB for compiled code. Hundreds of queries fill them, and each full
collection frees a little: queries then take five times the CPU.
"""


@dataclass(frozen=True)
class JvmOptions:
    """Options of the JVM. `conf` are the settings of Spark before a session exists. `length` is the
    expected duration of the work.
    """

    conf: Mapping[str, str] = field(default_factory=dict)
    java: Choice = "bundled"
    heap: str = "1g"
    length: Length = "seconds"
    log_file: Path | None = None
    master: str = "local[2,4]"


class Jvm:
    """A JVM for PySpark, which ends with its parent process.

    The output of the JVM and Spark's log go to the log file, if any. Signals of the terminal do not
    reach the JVM.
    """

    def __init__(self, options: JvmOptions, environment: Mapping[str, str] | None = None) -> None:
        """Launches the JVM without waiting. `environment` extends the variables of this process."""
        require_descriptors()
        self._java = java.find(options.java)
        self._scratch = Scratch()
        self._log = (options.log_file or self._scratch.path / "spark.log").absolute()
        create_directory(self._log.parent)
        self._connection = self._scratch.path / "gateway"
        self._log_start = self._log.stat().st_size if self._log.exists() else 0
        self._options = options
        self._extra_environment = dict(environment or {})
        self._cache: ClassCache | None = None
        self._process = self._launch()

    @classmethod
    def start(cls, options: JvmOptions) -> Jvm:
        """Starts a JVM and sets the variables of `await_gateway` in `os.environ`."""
        jvm = cls(options)
        os.environ.update(jvm.await_gateway())
        return jvm

    def await_gateway(self) -> dict[str, str]:
        """Waits for the JVM and returns the environment variables for PySpark's connection."""
        deadline = time.monotonic() + START_TIMEOUT
        while not self._connection.exists():
            if self._process.poll() is not None:
                if self._cache is None or not self._cache.discard():
                    raise self._start_error("cannot start Java")
                self._process = self._launch()
            if time.monotonic() > deadline:
                raise self._start_error(f"Java did not start within {START_TIMEOUT:.0f} s")
            time.sleep(0.01)
        content = self._connection.read_bytes()
        port, length = int.from_bytes(content[:4]), int.from_bytes(content[4:8])
        self._connection.unlink()
        return {PORT: str(port), SECRET: content[8 : 8 + length].decode()}

    def read_log(self) -> str:
        """Returns the log since the start of the JVM."""
        with self._log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def has_ended(self, timeout: float) -> bool:
        """Waits up to `timeout` seconds for the end of the JVM. Returns whether it has ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        return not self.alive

    def stop(self) -> None:
        """Waits for the end of the JVM, and kills the JVM after `STOP_TIMEOUT`.

        May be called twice. After a first run a background process builds the class cache for some
        seconds.
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
                self._cache.build_from_recording()
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
        flags = [f"-Xmx{byte_count(heap) // 2**20}m", *_COMPILERS[options.length]]
        flags += heap_flags(byte_count(heap))
        if options.length == "endless":
            flags += idle_flags(self._java, byte_count(heap))
        flags += spark_flags(self._java)
        flags += shlex.split(options.conf.get("spark.driver.defaultJavaOptions", ""))
        flags += shlex.split(options.conf.get("spark.driver.extraJavaOptions", ""))
        self._cache = ClassCache.open(self._java, class_path, flags, self._scratch.path)
        log4j = self._scratch.path / "log4j2.properties"
        log4j.touch(mode=0o600)
        log4j.write_text(log_settings(self._log), encoding="utf-8")
        settings = self._scratch.path / "spark.properties"
        settings.touch(mode=0o600)
        settings.write_text(_properties(options, self._scratch.path), encoding="utf-8")
        command = [
            str(self._java.executable),
            f"-Djava.io.tmpdir={self._scratch.path}",
            *self._error_file(),
            *flags,
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
        with open_private(self._log, "ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=self._environment(home),
                start_new_session=True,
                pass_fds=(self._scratch.lock,),
            )
        _raise_data_limit(process.pid)
        return process

    def _error_file(self) -> list[str]:
        """Returns the place of the report of a crash: without a log file it is temporary as well.

        By default it is the working directory.
        """
        if self._options.log_file is not None:
            return []
        return [f"-XX:ErrorFile={self._scratch.path / 'crash.log'}"]

    def _environment(self, home: Path) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if k not in (PORT, SECRET)}
        if self._options.master.startswith("local"):
            inherited.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            inherited.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
        return {
            **inherited,
            **self._extra_environment,
            "SPARK_HOME": str(home),
            "SPARK_CONNECT_MODE": "0",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._connection),
        }

    def _start_error(self, message: str) -> PenstockError:
        self._kill()
        self._cache = None
        lines = self.read_log().strip().splitlines()
        self._scratch.close()
        exceptions = [line.split(": ", 1)[-1] for line in lines if line.startswith(_THROWN)]
        detail = "\n".join(exceptions[-1:] or lines[-20:])
        return PenstockError(message, code="java-not-started", detail=detail or None)

    def _kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        _close(self._process.stdin)


def _class_path(home: Path, conf: Mapping[str, str]) -> list[Path]:
    """Returns the class path of Spark's launcher: user entries, configuration, Spark's jars."""
    configured = [os.environ.get("SPARK_CONF_DIR", str(home / "conf"))]
    configured += [os.environ.get(name, "") for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR")]
    extra = conf.get("spark.driver.extraClassPath", "").split(os.pathsep)
    directories = [Path(name) for name in configured if name and Path(name).is_dir()]
    return [
        *(Path(entry) for entry in extra if entry),
        *directories,
        *sorted((home / "jars").glob("*.jar")),
    ]


def _raise_data_limit(pid: int) -> None:
    """Raises the limit of the data of Java to the hard limit: Java reserves more than it uses."""
    if sys.platform == "linux":
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        with suppress(ProcessLookupError, PermissionError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (hard, hard))


def _properties(options: JvmOptions, scratch: Path) -> str:
    """Formats the settings as Java properties, for a file: a command line would show secrets."""
    defaults = {
        "spark.master": options.master,
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }
    conf = {**defaults, **options.conf}
    return "".join(f"{_escape(key)}={_escape(value)}\n" for key, value in conf.items())


def _escape(text: str) -> str:
    escapes = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return "".join(escapes.get(c, "\\" + c if c in "\\=:# !" else c) for c in text)


def _close(pipe: IO[bytes] | None) -> None:
    if pipe is not None:
        try:
            pipe.close()
        except OSError:
            return
