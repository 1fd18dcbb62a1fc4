"""Imports of the server: the packages of planning, SQL and Arrow stay in its workers.

They double the memory of an idle server.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from server_console import add_pipeline

PLANNING = ["numpy", "pandas", "penstock.plan", "penstock.sdk", "penstock.sql", "pyarrow",
            "pyspark", "sqlglot"]  # fmt: skip
FILES = {
    "shop.sql": "CREATE TABLE a (x INT) WITH (connector = 'impulse');\n"
    "INSERT INTO b SELECT x FROM a;\n",
    "arkflow.yaml": "streams:\n  - input: {type: memory}\n    output: {type: stdout}\n",
    "graph.json": '{"producers": [], "consumers": []}',
}
"""Pipelines of further languages. Files of Streamling are recognized by the words of its SQL."""
CODE = """
import json, os, sys
from pathlib import Path
from fastapi.testclient import TestClient
import server_console
from penstock.core.log import Silent
from penstock.server.api.application import ROUTERS, make_application
from penstock.server.server import TOKEN_FILE, open_server

directory = Path(sys.argv[1])
settings = server_console.stand_in_settings(directory)
with open_server(settings, Silent()) as server:
    views = server.parts.views
    server_console.wait_for(lambda: views.ready, lambda: "the server is not ready")
    client = TestClient(make_application(server.parts), base_url="http://localhost")
    client.headers["Authorization"] = f"Bearer {(settings.data / TOKEN_FILE).read_text()}"
    languages = sorted({each["language"] for each in client.get("/api/v1/pipelines").json()})
    id = client.get("/api/v1/pipelines").json()[0]["id"]
    needless = {"/events", "/components", "/schema", "/pipelines/{id}/tap"}
    paths = [
        route.path.replace("{id}", id)
        for router in ROUTERS for route in router.routes
        if "GET" in route.methods and not needless & {route.path}
        and "{" not in route.path.replace("{id}", "")
    ]
    statuses = {path: client.get(f"/api/v1{path}").status_code for path in paths}
    client.get("/metrics"), client.get("/")
    print(json.dumps([languages, statuses, sorted(set(sys.argv[2:]) & set(sys.modules))]))
"""


@pytest.mark.slow
def test_a_server_plans_nothing_in_its_process(tmp_path: Path) -> None:
    add_pipeline(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path), *PLANNING], capture_output=True, text=True,
        timeout=120, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    languages, statuses, planning = json.loads(done.stdout)
    assert languages == ["arkflow", "sql", "stream_data_processor", "yaml"]
    assert statuses["/pipelines"] == 200
    assert [path for path, status in statuses.items() if status >= 500] == []
    assert planning == []
