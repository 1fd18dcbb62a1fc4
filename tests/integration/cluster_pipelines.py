"""Pipelines for a standalone cluster: with shared and with hidden paths, and on this machine."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster_losses import LOSSES

from servers.certificates import Authority
from servers.spark import SparkCluster
from servers.web import Web

TOTALS = """\
name: totals
runtime:
  master: MASTER
  state: STATE
  spark: {spark.executor.memory: 512m}
sources:
  in:
    type: files
    path: ../in.json
    format: json
    schema: k STRING, n INT
    max_size: 3KB
    watch: true
transforms:
  totals: {type: sql, sql: "SELECT k, count(*) AS n, sum(n) AS total FROM in GROUP BY k"}
sinks:
  out: {type: sqlite, from: totals, path: totals.db, table: totals, mode: upsert}
"""
ROWS = """\
name: rows
runtime: {master: "MASTER", state: STATE}
sources: {in: {type: files, path: ../in.json, format: json, schema: "k STRING, n INT"}}
sinks: {out: {type: files, from: in, path: OUT, format: json}}
"""
GROUPS = """\
name: groups
runtime: {master: "MASTER", state: state}
sources:
  in: {type: files, path: NUMBERS, format: json, schema: n INT, max_size: 2KB, watch: true}
  names:
    type: files
    path: names.json
    format: json
    schema: d INT, name STRING
    primary_key: [d]
    lookup: true
transforms:
  read: {type: python, from: in, per: row, function: "reading:transform", schema: n INT}
  divided: {type: sql, sql: "SELECT n, 100 DIV (n % 50) AS q FROM read"}
  checked:
    type: python
    from: divided
    per: row
    schema: n INT, q LONG
    code: |
      def transform(row):
          if row["n"] % 40 == 7:
              raise ValueError("no sevens")
          return row
  named: {type: sql, sql: "SELECT n, name FROM read JOIN names ON n % 5 = d"}
  groups:
    type: sql
    sql: |
      SELECT name, count(*) AS numbers, sum(c) AS total, max(c) AS most
      FROM (SELECT n % 50 AS g, name, count(*) AS c FROM named GROUP BY n % 50, name)
      GROUP BY name
sinks:
  out: {type: sqlite, from: groups, path: DATABASE, table: groups, mode: upsert}
  shared: {type: files, from: checked, path: OUT, format: json}
  pushed: {type: http, from: named, url: URL, framing: array, tls: {ca: Tests.root.pem}}
"""
"""Pipeline with a state, a lookup table, modules and a certificate that only the driver has.

Its source, a query and a function have dead letters.
"""
READING = """\
import os
import signal
from pathlib import Path

from executors import executor

def transform(row):
    if row["n"] == FATAL and os.environ.get("SPARK_EXECUTOR_DIRS"):
        try:
            Path("KILLED").touch(exist_ok=False)
        except FileExistsError:
            return row
        os.kill(executor(), signal.SIGKILL)
    return row
"""
EXECUTORS = """\
import os
from pathlib import Path

def executor():
    pid = os.getpid()
    while b"java" not in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\\0")[0]:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return pid
"""
BAD = 10
GOOD = [number for number in range(300) if number % 30]
GROUP_ROWS = {f"name{d}": (10, 80, 8) for d in range(5)}
"""The rows of the pipeline `groups` after the numbers 0 to 399."""
CHECKED = [n for n in range(400) if n % 50 and n % 40 != 7]
"""The numbers of the sink `shared` of the pipeline `groups`."""
GROUP_LETTERS = Counter(
    [
        *(("in", "not-json", "{damaged") for _ in range(0, 400, 30)),
        *(("divided", "divide-by-zero", json.dumps({"n": n})) for n in range(0, 400, 50)),
        *(
            ("checked", "rejected", json.dumps({"n": n, "q": 100 // (n % 50)}))
            for n in range(7, 400, 40)
        ),
    ]
)
"""The dead letters of the pipeline `groups`: their nodes, codes and payloads."""
GROUP_COUNTS = {
    "in": (300, 10), "divided": (0, 6), "checked": (0, 8), "shared": (286, 0), "pushed": (300, 0),
}  # fmt: skip
"""The rows and the dead letters of the first run of `groups`. Transforms do not count rows."""
TOTAL_ROWS = {
    f"k{key}": (len(numbers), sum(numbers))
    for key in range(3)
    for numbers in [[number for number in GOOD if number % 3 == key]]
}


def write_pipelines(directory: Path, cluster: SparkCluster) -> None:
    """Writes the pipelines without a project, and their input."""
    lines = [json.dumps({"k": f"k{number % 3}", "n": number}) for number in range(300)]
    lines[::30] = ["{damaged"] * BAD
    (directory / "in.json").write_text("\n".join(lines) + "\n")
    hidden, url = str(cluster.hidden), cluster.url
    defaults = {"MASTER": url, "OUT": "out"}
    files = {
        "shared/totals": (TOTALS, {"STATE": "state"}),
        "refused/totals": (TOTALS, {}),
        "refused/rows": (ROWS, {"OUT": f"{hidden}/out"}),
        "hidden/rows": (ROWS, {}),
        "losses/losses": (LOSSES, {"STATE": "state", "HELD": str(directory / "losses")}),
    }
    for name, (text, values) in files.items():
        path = directory / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        state = f"{hidden}/{path.parent.name}"
        path.write_text(_filled(text, {**defaults, "STATE": state, **values}))


@contextmanager
def project(cluster: SparkCluster, directory: Path) -> Iterator[Path]:
    """Yields a project with its state in a directory that executors do not have."""
    project = cluster.hidden / "project"
    project.mkdir()
    numbers, authority = directory / "numbers", Authority(project)
    numbers.mkdir()
    (numbers / "0.json").write_text(json_numbers(0, 300))
    names = (json.dumps({"d": d, "name": f"name{d}"}) for d in range(5))
    (project / "names.json").write_text("\n".join(names))
    with Web(certificate=authority.issue("web")) as web:
        values = {
            "MASTER": cluster.url, "NUMBERS": f"{numbers}/*.json",
            "DATABASE": str(directory / "groups.db"), "KILLED": str(directory / "killed-groups"),
            "OUT": str(directory / "groups"), "FATAL": "251",
            "URL": f"https://127.0.0.1:{web.port}/kept/rows",
        }  # fmt: skip
        texts = {"groups.yaml": GROUPS, "reading.py": READING, "executors.py": EXECUTORS}
        for name, text in texts.items():
            (project / name).write_text(_filled(text, values))
        yield project


def json_numbers(start: int, end: int) -> str:
    """Returns the lines of a file of numbers. A damaged line follows each thirtieth number."""
    return "".join(
        json.dumps({"n": number}) + ("\n{damaged\n" if number % 30 == 0 else "\n")
        for number in range(start, end)
    )


def _filled(text: str, values: dict[str, str]) -> str:
    for word, value in values.items():
        text = text.replace(word, value)
    return text
