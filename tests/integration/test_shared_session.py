"""Pipelines of a share in one Spark session: failures, a killed JVM, stops, and exact results."""

from __future__ import annotations

import json
from pathlib import Path

import psutil
import pytest

from penstock.server.settings import Settings
from server_console import Console, OpenConsole, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("static_checks")]
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


def process(console: Console, name: str) -> int | None:
    owner = console.get(f"pipelines/{console.id(name)}")["owner"]
    return owner and owner["pid"]


def await_process(console: Console, name: str, *others: int) -> psutil.Process:
    """Waits for a run in another process, and returns that process."""
    return psutil.Process(
        wait_for(
            lambda: pid if (pid := process(console, name)) not in (None, *others) else None,
            lambda: f"{name} is {console.health(name)}",
        )
    )


def java_of(host: psutil.Process) -> psutil.Process:
    """Returns the only JVM of a host."""
    (java,) = [child for child in host.children() if child.name() == "java"]
    return java


def test_pipelines_of_one_session(open_console: OpenConsole, tmp_path: Path) -> None:
    console = open_console()

    def await_rows(name: str, rows: list[tuple[int, int]]) -> None:
        wait_for(
            lambda: len(written(tmp_path, name)) >= len(rows),
            lambda: f"{written(tmp_path, name)} {console.health(name)}",
        )
        assert written(tmp_path, name) == rows

    for name in ("shop", "cafe"):
        feed(tmp_path, name, "5", "7")
        console.post(f"pipelines/{console.id(name)}/start")
    for name in ("shop", "cafe"):
        await_rows(name, [(0, 5), (1, 7)])
    host = await_process(console, "shop")
    assert await_process(console, "cafe") == host
    java = java_of(host)

    for name, message in (
        ("large", 'runtime.memory is 2g, and in the share "team" it is 1g'),
        ("clash", 'the module "shops" is '),
    ):
        console.post(f"pipelines/{console.id(name)}/start")
        reason = console.await_health("failed", name=name)["reason"]
        assert reason["code"] == "share-conflict" and message in reason["message"]

    feed(tmp_path, "cafe", "8", "none")
    wait_for(lambda: process(console, "cafe") is None, lambda: str(console.health("cafe")))
    feed(tmp_path, "shop", "9")
    await_rows("shop", [(0, 5), (1, 7), (100, 9)])
    runs = console.get(f"pipelines/{console.id('cafe')}/runs")
    assert [run["ending"] for run in runs if run["ended"]][-1] == "failed"
    text = (tmp_path / "cafe" / "cafe.yaml").read_text()
    text = text.replace(", on_error: fail", "")
    console.post(f"pipelines/{console.id('cafe')}/apply", {"text": text, "note": "keeps rows"})
    await_rows("cafe", [(0, 5), (1, 7), (100, 8)])
    assert java_of(await_process(console, "cafe")) == java == java_of(host)

    java.kill()
    for name in ("shop", "cafe"):
        another = await_process(console, name, host.pid)
        (last,) = [
            run
            for run in console.get(f"pipelines/{console.id(name)}/runs")
            if run["errors"].get("run", [{}])[0].get("code") == "java-ended"
        ]
        assert last["ending"] == "failed"
        feed(tmp_path, name, "11")
    await_rows("shop", [(0, 5), (1, 7), (100, 9), (200, 11)])
    await_rows("cafe", [(0, 5), (1, 7), (100, 8), (200, 11)])
    assert await_process(console, "cafe") == await_process(console, "shop") == another

    console.post(f"pipelines/{console.id('cafe')}/stop")
    console.await_health("stopped", name="cafe")
    feed(tmp_path, "shop", "13")
    await_rows("shop", [(0, 5), (1, 7), (100, 9), (200, 11), (300, 13)])
    console.post(f"pipelines/{console.id('shop')}/stop")
    console.await_health("stopped", name="shop")
    wait_for(lambda: not another.is_running(), lambda: "the host runs")
