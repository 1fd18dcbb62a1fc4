"""The API of pipelines: check, apply, versions, dead letters, logs, events, metrics."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from made_letters import made_letters
from penstock.runtime.dead_letters.store import DeadLetters
from penstock.runtime.state.directory import StateDirectory, now
from server_console import PIPELINE, Console, add_pipeline, wait_for

BROKEN = PIPELINE.format(name="shop").replace("generate", "generat")
STATEFUL = """
name: shop
sources:
  orders: {type: generate, fields: {id: {type: sequence}}}
transforms:
  totals: {type: sql, from: orders, sql: SELECT id % 2 AS parity FROM orders}
sinks:
  out: {type: files, from: totals, path: out, format: json}
"""

pytestmark = pytest.mark.slow


def test_an_editor_is_answered(console: Console) -> None:
    text = "sources:\n  a: {type: impuls}\nsinks:\n  o: {type: print, from: }\n"
    path = f"pipelines/{console.id()}"
    for prefix, name in ((path, {}), ("", {"name": "draft"})):
        prefix = f"{prefix}/".removeprefix("/")
        found = console.post(f"{prefix}complete", {"text": text, "line": 4, "column": 26, **name})
        assert [item["label"] for item in found["items"]] == ["a"]
        found = console.post(f"{prefix}hover", {"text": text, "line": 4, "column": 14, **name})
        assert "standard output" in found["hover"]["text"]
        found = console.post(f"{prefix}hover", {"text": text, "line": 1, "column": 400, **name})
        assert found["hover"] is None or found["hover"]["text"]
        for place in ({"line": 0, "column": 1}, {"line": 1, "column": 10**9}, {"line": 1}):
            console.post(f"{prefix}hover", {"text": text, **place, **name}, status=422)
    (error, *_) = console.post(f"{path}/check", {"text": text})["errors"]
    assert error["fixes"][0]["edits"][0]["text"] == "impulse"


def test_a_check_has_the_span_and_the_hint(console: Console, pipeline_directory: Path) -> None:
    found = console.post(f"pipelines/{console.id()}/check", {"text": BROKEN})
    (error,) = found["errors"]
    assert (found["ok"], error["code"], error["hint"]) == (
        False, "unknown-type", 'did you mean "generate"?',
    )  # fmt: skip
    line = BROKEN.splitlines()[error["line"] - 1]
    assert line[error["column"] - 1 :][: error["length"]] == "generat"
    assert "generat," not in (pipeline_directory / "shop" / "shop.yaml").read_text(), (
        "nothing is saved"
    )


def test_an_invalid_text_is_not_applied(console: Console, pipeline_directory: Path) -> None:
    before = (pipeline_directory / "shop" / "shop.yaml").read_text()
    answer = console.post(f"pipelines/{console.id()}/apply", {"text": BROKEN}, status=422)
    assert answer["errors"][0]["code"] == "unknown-type"
    assert (pipeline_directory / "shop" / "shop.yaml").read_text() == before
    assert console.get(f"pipelines/{console.id()}/versions") == []


@pytest.mark.usefixtures("static_checks")
def test_pipelines_are_created_and_deleted(console: Console, pipeline_directory: Path) -> None:
    body = {"name": "cafe", "text": PIPELINE.format(name="cafe"), "note": "first"}
    created = console.post("pipelines", body, status=201)
    assert (created["name"], created["version"], created["changed"]) == ("cafe", 1, False)
    (version,) = console.get(f"pipelines/{created['id']}/versions")
    assert (version["author"], version["note"]) == ("admin", "first")
    assert console.post("pipelines", body, status=409)["errors"][0]["code"] == "existing-pipeline"
    for name in ("../cafe", "Cafe", "", "a/b", ".x"):
        console.post("pipelines", {**body, "name": name}, status=400 if name == "Cafe" else 422)
    deletable = {each["name"]: each["deletable"] for each in console.get("pipelines")}
    assert deletable == {"shop": False, "cafe": True}
    answer = console.client.delete(f"/api/v1/pipelines/{console.id()}")
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, "own-file")
    assert console.client.delete(f"/api/v1/pipelines/{created['id']}").status_code == 204
    assert [each["name"] for each in console.get("pipelines")] == ["shop"]
    assert console.client.get(f"/api/v1/pipelines/{created['id']}").status_code == 404


def test_a_changed_file_is_a_version_at_the_next_start(
    console: Console, pipeline_directory: Path
) -> None:
    id = console.id()
    console.post(f"pipelines/{id}/start")
    console.await_health("running")
    (pipeline_directory / "shop" / "shop.yaml").write_text(STATEFUL)
    wait_for(lambda: console.get(f"pipelines/{id}")["changed"], lambda: "the change is not found")
    console.post(f"pipelines/{id}/stop")
    console.await_health("stopped")
    console.post(f"pipelines/{id}/start")
    console.await_health("running")
    found = console.get(f"pipelines/{id}")
    assert (found["version"], found["changed"], found["wish"]) == (2, False, "running")
    assert [run["pipeline_version"] for run in console.get(f"pipelines/{id}/runs")] == [2, 1]


def test_events_have_what_changes(console: Console) -> None:
    with console.client.stream("GET", "/api/v1/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = response.iter_lines()
        assert next(lines) == "event: pipelines"
        first = json.loads(next(lines).removeprefix("data: "))
        assert [each["name"] for each in first["changed"]] == ["shop"]
        console.client.app.state.streams.close_all()  # type: ignore[attr-defined]


def test_logs_are_of_a_run_and_a_level(console: Console, pipeline_directory: Path) -> None:
    add_pipeline(pipeline_directory, "cafe", "refuse 2")
    wait_for(lambda: len(console.get("pipelines")) == 2, lambda: "cafe is missing")
    id = console.id("cafe")
    console.post(f"pipelines/{id}/start")
    console.await_health("failed", name="cafe")
    (line,) = console.get(f"pipelines/{id}/logs", params={"level": "error"})
    assert (line["event"], line["code"]) == ("error", "state")
    assert console.get(f"pipelines/{id}/logs", params={"run": "other"}) == []
    assert console.get(f"pipelines/{id}/logs", params={"text": "nothing of it"}) == []


def test_no_dead_letters(console: Console) -> None:
    found = console.get(f"pipelines/{console.id()}/dead-letters")
    assert (found["total"], found["counts"], found["letters"]) == (0, [], [])
    assert found["places"]["out"] == {"file": "shop.yaml", "line": 6}, "the line of a node"
    answer = console.client.get(f"/api/v1/pipelines/{console.id()}/dead-letters/abc")
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (404, "no-dead-letter")


def test_components_and_the_schema(console: Console) -> None:
    components = console.get("components")
    assert "kafka" in {each["type"] for each in components["sources"]}
    assert console.get("schema")["type"] == "object"
    assert console.client.get("/ready").json() == {"ready": True}


def test_a_request_without_a_body(console: Console) -> None:
    answer = console.client.post(f"/api/v1/pipelines/{console.id()}/dead-letters/replay")
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["message"]) == (422, "the request has no body")
    assert "JSON object" in error["hint"]


def test_pages_of_dead_letters_and_of_runs(console: Console, pipeline_directory: Path) -> None:
    id, state = console.id(), StateDirectory(pipeline_directory / "shop" / ".penstock" / "shop")
    DeadLetters(state.dead_letters).put("made", made_letters(5, "orders"))
    path, found, before = f"pipelines/{id}/dead-letters", [], None
    while True:
        page = console.get(path, params={"limit": 2, **({"before": before} if before else {})})
        assert page["total"] == 5
        found += [each["id"][-1] for each in page["letters"]]
        if (before := page["next"]) is None:
            break
    assert found == ["4", "3", "2", "1", "0"]
    odd = console.get(path, params={"code": "odd", "limit": 1})
    assert (odd["total"], odd["counts"]) == (2, [{"node": "orders", "code": "odd", "count": 2}])
    for query in ({"before": "x"}, {"limit": 1001}, {"limit": 0}):
        assert console.client.get(f"/api/v1/{path}", params=query).status_code in (400, 422)
    ids = {"ids": [f"{number:09}" for number in (3, 4, 77)]}
    assert [console.post(f"{path}/remove", ids)["removed"] for _ in range(2)] == [2, 0]

    for number in range(3):
        state.end_run({"id": f"r{number}", "began": now()}, ended=now(), ending="complete",
                      exit_code=0, errors={})  # fmt: skip
    runs = f"pipelines/{id}/runs"
    wait_for(lambda: len(console.get(runs)) == 3, lambda: str(console.get(runs)))
    assert [each["id"] for each in console.get(runs, params={"limit": 2})] == ["r2", "r1"]
    assert [each["id"] for each in console.get(runs, params={"before": "r1"})] == ["r0"]
    unknown = console.client.get(f"/api/v1/{runs}", params={"before": "x"})
    assert unknown.json()["errors"][0]["code"] == "no-run"
