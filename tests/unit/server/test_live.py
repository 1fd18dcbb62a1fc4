"""Drafts at work: the pool of warm workers, and its routes as server-sent events."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock.core.errors import Transient
from penstock.runtime.taps.files import TapDirectory, TapRequest
from penstock.server.api import events as event_streams
from penstock.server.drafts import Draft
from penstock.server.live import session_pool, session_process
from penstock.server.live.session_pool import Job, SessionPool
from penstock.server.store.audit import Audit
from penstock.server.workers.memory import ProcessTree
from penstock.server.workers.pool import WorkerError
from server_console import PIPELINE, STAND_IN_SESSION, Console, wait_for
from web_console import listening

pytestmark = pytest.mark.slow
FILE = Path("/pipelines/shop/shop.yaml")


@pytest.fixture
def pool() -> Iterator[SessionPool]:
    pool = SessionPool(STAND_IN_SESSION, os.environ, at_work=1)
    yield pool
    pool.close()


def submit(pool: SessionPool, node: str, file: Path = FILE, user: str = "ann") -> Job:
    return pool.submit(user, "preview", Draft(file, "text", {}), 5.0, nodes=[node])


def events_of(job: Job) -> list[tuple[str, dict[str, Any]]]:
    return list(iter(job.events.get, None))


def process_of(job: Job) -> str:
    (_, facts), *_ = [each for each in events_of(job) if each[0] == "rows"]
    return str(facts["rows"][0][1])


def test_a_worker_stays_warm_for_the_pipelines_of_a_directory(pool: SessionPool) -> None:
    first = process_of(submit(pool, "a"))
    assert process_of(submit(pool, "b")) == first
    other = process_of(submit(pool, "a", Path("/pipelines/cafe/cafe.yaml")))
    assert other != first, "modules of another directory stay out of the process"


def test_operations_wait_in_order(pool: SessionPool) -> None:
    first, second, third = submit(pool, "hang"), submit(pool, "a"), submit(pool, "b")
    assert [pool.position(job) for job in (first, second, third)] == [0, 1, 2]
    pool.cancel(second)
    assert events_of(second) == []
    assert pool.position(third) == 1
    pool.cancel(first)
    assert events_of(first)[-1] == ("done", {"reason": "cancelled"})
    assert [name for name, _ in events_of(third)] == ["started", "rows", "done"]


def test_a_user_has_some_operations_at_a_time(
    pool: SessionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_pool, "AT_WORK_PER_USER", 1)
    first = submit(pool, "hang")
    with pytest.raises(Transient, match='the user "ann" has 1 previews'):
        submit(pool, "a")
    second = submit(pool, "a", user="bob")
    pool.cancel(first)
    assert events_of(second)[-1][0] == "done"


def test_a_worker_that_ends_or_does_not_answer_is_replaced(
    pool: SessionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_process, "CANCEL_SECONDS", 0.1)
    with pytest.raises(WorkerError, match="the worker of the server has ended"):
        submit(pool, "crash").wait()
    deaf = submit(pool, "deaf")
    assert deaf.events.get() is not None
    pool.cancel(deaf)
    assert events_of(deaf)[-1][1]["errors"][0]["code"] == "timeout"
    with pytest.raises(WorkerError, match="made up"):
        submit(pool, "fail").wait()
    assert submit(pool, "a").wait() == {"reason": "end"}


def test_an_idle_worker_ends() -> None:
    pool = SessionPool(STAND_IN_SESSION, os.environ, idle_seconds=0.01)
    process = int(process_of(submit(pool, "a")))
    wait_for(lambda: not Path(f"/proc/{process}").exists(), lambda: "the worker has not ended")


def test_a_preview_streams_the_rows_of_an_unsaved_text(console: Console) -> None:
    names = [name for name, _ in stream(console, f"pipelines/{console.id()}/preview", "orders")]
    assert names == ["started", "rows", "done"]
    body = {"name": "cafe", "text": "a draft", "nodes": ["orders"]}
    (_, (_, rows), _) = events(console.client.post("/api/v1/preview", json=body).text)
    assert rows["rows"][0][0] == "a draft"
    assert [each["name"] for each in console.get("pipelines")] == ["shop"], "nothing is saved"


def test_a_client_that_leaves_ends_its_preview(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_pool, "AT_WORK_PER_USER", 1)
    headers = {"Authorization": console.client.headers["Authorization"]}
    with listening(console) as address:
        url = f"{address}/api/v1/pipelines/{console.id()}/preview"
        with httpx.stream("POST", url, json={"nodes": ["hang"]}, headers=headers) as response:
            lines = response.iter_lines()
            assert next(lines) == "event: started"
            other = httpx.post(url, json={"nodes": ["a"]}, headers=headers)
            assert other.json()["errors"][0]["code"] == "workers-busy"
            recorded = [each["facts"] for each in console.get("audit")]
            assert {"nodes": ["a"]} not in recorded, "only accepted previews are recorded"
            assert {"nodes": ["hang"]} in recorded
        wait_for(
            lambda: httpx.post(url, json={"nodes": ["a"]}, headers=headers).status_code == 200,
            lambda: "the preview has not ended",
        )


def test_a_preview_beyond_the_streams_of_a_user_is_not_recorded(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"pipelines/{console.id()}/preview"
    with monkeypatch.context() as patch:
        patch.setattr(event_streams, "STREAMS_PER_USER", 0)
        console.post(path, {"nodes": ["a"]}, status=429)
    assert "preview" not in [each["action"] for each in console.get("audit")]

    def fail(*_: Any, **__: Any) -> None:
        raise Transient("the store is full", code="store-full")

    monkeypatch.setattr(Audit, "record", fail)
    monkeypatch.setattr(event_streams, "STREAMS_PER_USER", 1)
    sessions = console.server.parts.sessions
    for _ in range(session_pool.AT_WORK_PER_USER + 1):
        answer = console.client.post(f"/api/v1/{path}", json={"nodes": ["hang"]})
        assert answer.json()["errors"][0]["code"] == "store-full", "it has ended, and its stream"
        wait_for(lambda: not sessions._working, lambda: "the preview has not ended")


def test_a_tap_streams_rows_and_ends_with_its_listener(
    console: Console, pipeline_directory: Path
) -> None:
    id, headers = console.id(), {"Authorization": console.client.headers["Authorization"]}
    stopped = console.client.get(f"/api/v1/pipelines/{id}/tap", params={"node": "orders"})
    assert stopped.json()["errors"][0]["code"] == "not-running"
    console.post(f"pipelines/{id}/start")
    console.await_health("running")
    state = pipeline_directory / "shop" / ".penstock" / "shop"
    with listening(console) as address:
        url = f"{address}/api/v1/pipelines/{id}/tap"
        with httpx.stream("GET", url, params={"node": "orders"}, headers=headers) as response:
            lines = response.iter_lines()
            (tap,) = wait_for(lambda: TapDirectory.all(state), lambda: "there is no tap")
            assert tap.request() == TapRequest("orders", 20)
            tap.answer(1, {"rows": [["7"]], "columns": []})
            assert next(lines) == "event: rows"
            assert json.loads(next(lines).removeprefix("data: "))["rows"] == [["7"]]
        wait_for(lambda: not TapDirectory.all(state), lambda: "the tap has not ended")


def test_a_preview_requires_the_rights_to_run_code_and_to_see_rows(console: Console) -> None:
    path = f"/api/v1/pipelines/{console.id()}/preview"
    for name, rights in (("ann", ["view", "edit"]), ("bob", ["view", "data", "operate"])):
        console.post("users", {"name": name, "rights": rights}, status=201)
        token = console.server.parts.accounts.issue(name, "token", "of a test")
        headers = {"Authorization": f"Bearer {token}"}
        answer = console.client.post(path, json={"nodes": ["orders"]}, headers=headers)
        assert (answer.status_code, answer.json()["errors"][0]["code"]) == (403, "forbidden")


@pytest.mark.parametrize(
    "body",
    [{"nodes": []}, {"nodes": ["a"], "rows": 0}, {"nodes": ["a"], "rows": 10_001},
     {"nodes": ["a"], "seconds": 61}, {"nodes": ["a"], "seconds": "nan"}, {"nodes": ["a" * 301]}],
)  # fmt: skip
def test_limits_of_a_preview(console: Console, body: dict[str, Any]) -> None:
    console.post(f"pipelines/{console.id()}/preview", body, status=422)


def test_templates_are_valid_texts(console: Console) -> None:
    templates = console.get("templates")
    assert templates[0]["name"] == "generate"
    for each in templates:
        found = console.post("check", {"name": "draft", "text": each["text"]})
        assert found["ok"], (each["name"], found["errors"])
    assert {each["name"]: each["systems"] for each in templates}["changes"] == ["postgres"]


def test_a_text_of_another_system_is_yaml_beside(console: Console) -> None:
    text = "CREATE TABLE numbers (id BIGINT) WITH (connector = 'impulse', event_rate = '10');"
    found = console.post("convert", {"name": "draft", "text": text + "SELECT id FROM numbers;"})
    assert found["language"] == "sql"
    assert "type: impulse" in found["text"]
    plain = console.post("convert", {"name": "draft", "text": PIPELINE.format(name="cafe")})
    assert plain["language"] == "yaml"
    broken = console.post("convert", {"name": "draft", "text": "CREATE TABLE ("}, status=400)
    assert broken["errors"][0]["line"] == 1


def stream(console: Console, path: str, node: str) -> list[tuple[str, dict[str, Any]]]:
    response = console.client.post(f"/api/v1/{path}", json={"nodes": [node]})
    assert response.headers["content-type"].startswith("text/event-stream"), response.text
    return events(response.text)


def events(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Returns the names and the facts of server-sent events."""
    found = []
    for block in text.split("\n\n")[:-1]:
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_a_worker_that_needs_too_much_memory_is_killed(
    pool: SessionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_process, "worker_limit", lambda: 300_000_000)
    job = submit(pool, "greedy")
    wait_for(lambda: pool._working.get(job), lambda: "no process")
    process = pool._working[job]
    assert process is not None
    ((_, _), (event, facts)) = events_of(job)
    assert (event, facts["errors"][0]["code"]) == ("failed", "memory-exceeded")
    assert "286.1 MiB" in facts["errors"][0]["message"]
    assert ProcessTree.of(process._process.pid).memory == 0
    assert process_of(submit(pool, "a"))


def test_the_data_of_a_process_is_limited() -> None:
    code = "from penstock.server.workers.memory import *; limit_data(); bytearray(PROCESS_BYTES)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "MemoryError"
