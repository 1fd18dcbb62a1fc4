"""Pipelines of a share in one Spark session: failures, a killed JVM, stops, and exact results."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import psutil
import pytest

from penstock.runtime.state.directory import StateDirectory
from penstock.server.settings import Settings
from server_console import OpenConsole
from server_console import wait_for as wait_for_seconds

pytestmark = [pytest.mark.spark, pytest.mark.slow]
wait_for = partial(wait_for_seconds, seconds=300)
"""Waits as long as two starts of Spark may take on a busy machine."""
PIPELINE = """\
name: {name}
runtime: {{share: team, master: "local[1]", memory: {memory}}}
sources:
  rows: {{type: files, path: in, watch: true, format: json, schema: "id LONG, text STRING"}}
transforms:
  lengths:
    {{type: python, from: rows, per: row, schema: "id LONG, length LONG", on_error: fail,
      function: "{module}:transform"}}
sinks: {{out: {{type: files, from: lengths, path: out, format: json}}}}
"""
MODULE = 'def transform(row):\n    return {"id": row["id"], "length": int(row["text"])}\n'


@pytest.fixture
def server_settings(tmp_path: Path) -> Settings:
    for name, memory, module in (
        ("shop", "1g", "shops"), ("cafe", "1g", "cafes"), ("large", "2g", "larges"),
        ("clash", "1g", "shops"),
    ):  # fmt: skip
        (tmp_path / name / "in").mkdir(parents=True)
        text = PIPELINE.format(name=name, memory=memory, module=module)
        (tmp_path / name / f"{name}.yaml").write_text(text)
        (tmp_path / name / f"{module}.py").write_text(MODULE)
    return Settings(tmp_path, tmp_path / ".penstock" / "server")


def feed(directory: Path, name: str, *texts: str) -> None:
    """Adds a file with a row for each text."""
    number = len(list((directory / name / "in").glob("*.json")))
    lines = [json.dumps({"id": 100 * number + i, "text": text}) for i, text in enumerate(texts)]
    hidden = directory / name / f"{number}.tmp"
    hidden.write_text("\n".join(lines) + "\n")
    hidden.rename(directory / name / "in" / f"{number}.json")


def written(directory: Path, name: str) -> list[tuple[int, int]]:
    """Returns the rows that a pipeline has written."""
    lines = [
        json.loads(line)
        for file in (directory / name / "out").glob("*.jsonl")
        for line in file.read_text().splitlines()
    ]
    return sorted((line["id"], line["length"]) for line in lines)


def process(directory: Path, name: str) -> int | None:
    """Returns the process that has the lock of a pipeline."""
    state = StateDirectory(directory / name / ".penstock" / name)
    owner = state.owner() if state.root.exists() else None
    return owner and owner.get("pid")


def java_of(host: psutil.Process) -> psutil.Process:
    """Returns the only JVM of a host."""
    (java,) = [child for child in host.children() if child.name() == "java"]
    return java


def test_pipelines_of_one_session(open_console: OpenConsole, tmp_path: Path) -> None:
    console = open_console()

    def await_process(name: str, *others: int) -> psutil.Process:
        """Waits for a run in another process, and returns that process."""
        pid = wait_for(
            lambda: found if (found := process(tmp_path, name)) not in (None, *others) else None,
            lambda: f"{name} is {console.health(name)}",
        )
        return psutil.Process(pid)

    def await_rows(name: str, *rows: tuple[int, int]) -> None:
        wait_for(
            lambda: len(written(tmp_path, name)) >= len(rows),
            lambda: f"{written(tmp_path, name)} {console.health(name)}",
        )
        assert written(tmp_path, name) == list(rows)

    for name in ("shop", "cafe"):
        feed(tmp_path, name, "5", "7")
        console.post(f"pipelines/{console.id(name)}/start")
    for name in ("shop", "cafe"):
        await_rows(name, (0, 5), (1, 7))
    host = await_process("shop")
    assert await_process("cafe") == host
    java = java_of(host)

    for name, message in (
        ("large", 'runtime.memory is 2g, and in the share "team" it is 1g'),
        ("clash", 'the module "shops" is '),
    ):
        console.post(f"pipelines/{console.id(name)}/start")
        reason = console.await_health("failed", name=name)["reason"]
        assert reason["code"] == "share-conflict" and message in reason["message"]

    java.kill()
    for name in ("shop", "cafe"):
        another = await_process(name, host.pid)
        (_, run) = console.get(f"pipelines/{console.id(name)}/runs")
        assert run["ending"] == "failed"
        assert run["errors"]["run"][0]["code"] == "java-ended"
        feed(tmp_path, name, "11")
    for name in ("shop", "cafe"):
        await_rows(name, (0, 5), (1, 7), (100, 11))
    assert await_process("cafe") == await_process("shop") == another

    feed(tmp_path, "cafe", "8", "none")
    wait_for(lambda: process(tmp_path, "cafe") is None, lambda: str(console.health("cafe")))
    feed(tmp_path, "shop", "13")
    await_rows("shop", (0, 5), (1, 7), (100, 11), (200, 13))
    console.post(f"pipelines/{console.id('cafe')}/stop")
    console.await_health("stopped", "failed", name="cafe")
    runs = console.get(f"pipelines/{console.id('cafe')}/runs")
    assert any(run["errors"] and "run" not in run["errors"] for run in runs)
    assert await_process("shop") == another
    console.post(f"pipelines/{console.id('shop')}/stop")
    console.await_health("stopped", name="shop")
    wait_for(lambda: not another.is_running(), lambda: "the host runs")
    await_rows("cafe", (0, 5), (1, 7), (100, 11))
