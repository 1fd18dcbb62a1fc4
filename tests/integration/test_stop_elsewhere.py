"""A stop by a server ends the run of another machine whose state is in an object store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock import app
from penstock.runtime.object_state import lease as leases
from penstock.runtime.object_state.client import ObjectClient
from penstock.runtime.object_state.mirror import ObjectStorage
from penstock.runtime.state.directory import StateDirectory
from server_console import OpenConsole, wait_for
from servers.s3 import Bucket

pytestmark = pytest.mark.slow


def test_a_run_of_another_machine_is_stopped(
    open_console: OpenConsole, pipeline_directory: Path, bucket: Bucket, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    file = pipeline_directory / "shop" / "shop.yaml"
    runtime = {"state": f"{bucket.url}/states", "storage": bucket.server.storage}
    file.write_text(f"{file.read_text()}runtime: {json.dumps(runtime)}\n")
    location = app.plan(file).location
    assert location.url is not None
    root = tmp_path / "other"
    storage = ObjectStorage(ObjectClient(location.url, location.storage), root, 1.5)
    console = open_console()
    path = f"pipelines/{console.id()}/stop"
    console.post(path)
    assert console.get("audit")[0]["action"] == "stop"
    monkeypatch.setattr(leases.socket, "gethostname", lambda: "other")
    with StateDirectory(root, storage).locked():
        console.post(path)
        wait_for((root / "stop").exists, lambda: "the run was not requested to stop")
    assert console.health()["state"] == "stopped"
