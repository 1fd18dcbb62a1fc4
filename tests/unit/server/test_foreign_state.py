"""State directories with foreign content: shown at their pipeline, others are not affected."""

from __future__ import annotations

import fcntl
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from server_console import PIPELINE, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from server_console import Console

pytestmark = pytest.mark.slow
FOREIGN = [
    ("status.json", "{}"), ("status.json", "[]"), ("status.json", "5"), ("status.json", "\xff"),
    ("status.json", '{"nodes": 5, "dead_letters": "x", "queries": [], "started": 1}'),
    ("status.json", "[" * 100_000), ("status.json", None), ("run.json", "[]"), ("run.json", "{}"),
    ("runs.jsonl", "5\n"), ("runs.jsonl", '{"id": 1}\n'), ("runs.jsonl", "\x00\n"),
    ("runs.jsonl", '{"id": "1", "began": "", "ended": "", "ending": "failed", "errors": [1]}\n'),
    ("lock", None), ("lock", "5"), ("lock", '{"since": "yesterday"}'), ("lock", '{"pid": "x"}'),
]  # fmt: skip

EXPECTED = {"never-run", "corrupt-state", "unreadable-state", "failed"}


def test_foreign_content_affects_its_pipeline_only(
    console: Console, pipeline_directory: Path
) -> None:
    """The runs of a pipeline that comes last start and stop."""
    with ExitStack() as stack:
        for number, (name, content) in enumerate(FOREIGN):
            pipeline = f"p{number}"
            state = pipeline_directory / pipeline / ".penstock" / pipeline
            state.mkdir(parents=True)
            (state.parent.parent / f"{pipeline}.yaml").write_text(PIPELINE.format(name=pipeline))
            if content is None:
                os.mkfifo(state / name)
            else:
                (state / name).write_bytes(content.encode("latin-1"))
            if name == "lock" and content is not None:
                file = stack.enter_context((state / name).open("a"))
                fcntl.flock(file, fcntl.LOCK_EX)
        views = console.server.parts.views
        wait_for(lambda: len(views.summaries()) == len(FOREIGN) + 1, lambda: "files are missing")
        console.post(f"pipelines/{console.id()}/start")
        console.await_health("running")
        for each in console.get("pipelines"):
            reason = each["health"]["reason"]
            assert reason is None or reason["code"] in EXPECTED, (each["name"], reason)
            for path in ("", "/runs", "/metrics"):
                console.get(f"pipelines/{each['id']}{path}")
        assert console.client.get("/metrics").status_code == 200
        console.post(f"pipelines/{console.id()}/stop")
        console.await_health("stopped")


def test_a_file_of_the_same_size_and_time_is_read_again(
    console: Console, pipeline_directory: Path
) -> None:
    file = pipeline_directory / "shop" / "shop.yaml"
    before = file.stat()
    other = file.with_name(".other")
    other.write_text(file.read_text().replace("path: out", "path: new"))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    console.server.parts.views._catalog.refresh()
    assert "path: new" in console.get(f"pipelines/{console.id()}")["text"]
