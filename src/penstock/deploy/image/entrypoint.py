"""Entry point of the image: an executor of Spark on Kubernetes, or a command of `penstock`.

`executor` replaces this process with the JVM of an executor, whose options Spark passes in
variables. All other arguments are those of `penstock`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from penstock.core.errors import PenstockError
from penstock.core.java import find, spark_home

ARCHIVE = Path("/opt/penstock/executor.jsa")
"""The class archive of executors, which the build of the image makes."""
CLASS = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_OPTION = re.compile(r"SPARK_JAVA_OPT_(\d+)\Z")
_ARGUMENTS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


def class_path(environment: Mapping[str, str]) -> str:
    """Returns the class path of an executor: that of the user, then the jars of Spark by name."""
    jars = sorted(map(str, (spark_home() / "jars").glob("*.jar")))
    return os.pathsep.join([*filter(None, [environment.get("SPARK_CLASSPATH")]), *jars])


def executor_command(java: Path, environment: Mapping[str, str]) -> list[str]:
    """Returns the command of an executor. Options of the user come last, and so override others.

    Raises KeyError without a variable that Spark sets.
    """
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    arguments = [word for name, value in _ARGUMENTS.items() for word in (name, environment[value])]
    return [
        str(java), *_archive_flags(), f"-Xms{memory}", f"-Xmx{memory}", *_java_options(environment),
        "-cp", class_path(environment), CLASS, *arguments,
    ]  # fmt: skip


def main(arguments: Sequence[str]) -> NoReturn:
    """Replaces this process with an executor or with `penstock`."""
    if list(arguments[:1]) != ["executor"]:
        os.execv(sys.executable, [sys.executable, "-m", "penstock", *arguments])
    try:
        command = executor_command(find("system").executable, os.environ)
    except KeyError as error:
        sys.exit(
            f"error: the variable {error.args[0]} is not set: Spark sets it in an executor pod"
        )
    except PenstockError as error:
        sys.exit(f"error: {error.message}")
    environment = {**os.environ, "SPARK_HOME": str(spark_home())}
    os.execve(command[0], command, environment)


def _archive_flags() -> list[str]:
    return [f"-XX:SharedArchiveFile={ARCHIVE}", "-Xshare:auto"] if ARCHIVE.is_file() else []


def _java_options(environment: Mapping[str, str]) -> list[str]:
    """Returns the options of Spark in the order of their numbers."""
    found = [(int(m[1]), name) for name in environment if (m := _OPTION.match(name))]
    return [environment[name] for _, name in sorted(found)]


if __name__ == "__main__":
    main(sys.argv[1:])
