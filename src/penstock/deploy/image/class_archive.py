"""Class archive of executors: made once, in the build of the image.

    python3 -m penstock.deploy.image.class_archive

runs a pipeline on a cluster in one process, whose executor records its classes, and writes the
archive. The run also fills the class cache of the driver. Takes about two minutes of CPU.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock import app
from penstock.core.error_report import format_error
from penstock.core.errors import PenstockError, raise_all
from penstock.core.java import find
from penstock.deploy.image.entrypoint import ARCHIVE, class_path
from penstock.engine.spark_session.classcache import await_build

MASTER = "local-cluster[1,1,1024]"
_RECORDED = "classes-{{EXECUTOR_ID}}.lst"
_SCALA = ("SPARK_SCALA_VERSION", "2.13")
"""The variable of Spark's launcher, which workers use: the wheel has no directory of this name."""
_GENERATED = "GeneratedClass"
_PIPELINE = """\
name: class_archive
runtime:
  master: {master}
  java: system
  state: {directory}/state
  spark:
    spark.executor.memory: 1g
    spark.executor.extraJavaOptions: -XX:DumpLoadedClassList={directory}/{recorded}
sources:
  numbers: {{type: generate, rows: 1000, fields: {{n: sequence}}}}
transforms:
  counts:
    type: sql
    sql: SELECT n % 10 AS k, count(*) AS numbers, sum(n) AS total FROM numbers GROUP BY n % 10
sinks:
  out: {{type: files, from: counts, path: {directory}/out, format: json}}
"""


def record(directory: Path) -> list[str]:
    """Runs a pipeline and returns the classes that its executor has loaded."""
    pipeline = directory / "pipeline.yaml"
    text = _PIPELINE.format(master=MASTER, directory=directory, recorded=_RECORDED)
    pipeline.write_text(text, encoding="utf-8")
    os.environ.setdefault(*_SCALA)
    try:
        raise_all(app.run(pipeline).errors.values())
    except PenstockError as error:
        log = "".join(path.read_text("utf-8", "replace") for path in directory.rglob("spark.log"))
        sys.exit(f"{log}\n{format_error(error)}")
    lists = sorted(directory.glob("classes-*.lst"))
    lines = [line for path in lists for line in path.read_text("utf-8", "replace").splitlines()]
    return [line for line in dict.fromkeys(lines) if _GENERATED not in line]


def dump(classes: list[str], archive: Path, directory: Path) -> None:
    """Writes the archive of classes."""
    recorded = directory / "classes.lst"
    recorded.write_text("\n".join(classes) + "\n", encoding="utf-8")
    archive.parent.mkdir(parents=True, exist_ok=True)
    command = [
        str(find("system").executable), "--add-modules=jdk.incubator.vector", "-XX:+UseSerialGC",
        "-Xlog:disable", "-Xshare:dump", f"-XX:SharedClassListFile={recorded}",
        f"-XX:SharedArchiveFile={archive}", "-cp", class_path({}),
    ]  # fmt: skip
    subprocess.run(command, check=True)


def main(archive: Path = ARCHIVE) -> None:
    with TemporaryDirectory(prefix="penstock-classes-") as name:
        directory = Path(name)
        dump(record(directory), archive, directory)
    await_build()
    print(f"wrote {archive}, {archive.stat().st_size / 2**20:.0f} MiB")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
