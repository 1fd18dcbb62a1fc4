"""Joins with rows of a web service, which are looked up by key."""

from __future__ import annotations

import json

import pytest

from integration.pipelines import Workspace
from servers.web import Web

pytestmark = pytest.mark.spark

PIPELINE = """\
sources:
  orders: {{type: files, path: in/*.jsonl, max_files: 1, schema: "n INT, id INT"}}
  users:
    type: http_lookup
    url: {url}
    pointer: /data
    max_keys: {max_keys}
    format: json
    schema: id INT, name STRING, age INT
    primary_key: [id]
    metadata: {{of: url}}
    retry: {{backoff: 1ms}}
    lookup: {{cache: {{ttl: 1h}}}}
transforms:
  joined: {{type: lookup, from: orders, table: users, on: [id], columns: [name, age, of]}}
sinks:
  out: {{type: memory, from: joined, name: out}}
"""


@pytest.mark.parametrize("max_keys", [1, 10])
def test_rows_of_a_service(web_server: Web, workspace: Workspace, max_keys: int) -> None:
    """Missing keys are null, rejected keys and wrong values dead letters."""
    name = web_server.new_name()
    users = [
        {"id": 1, "name": "Ann", "age": 30},
        {"id": 2, "name": "Bob", "age": "old"},
        {"id": 503, "name": "Eve", "age": 3},
    ]
    web_server.put_table(name, users)
    for number, ids in enumerate([[1, 2, 1, None], [1, 9, 422, 503]]):
        rows = [{"n": 4 * number + index, "id": id_} for index, id_ in enumerate(ids)]
        workspace.put(f"in/{number}.jsonl", [json.dumps(row) for row in rows])
    url = f"{web_server.url}/tables/{name}" + ("/{id}" if max_keys == 1 else "?ids={id}")
    workspace.run(PIPELINE.format(url=url, max_keys=max_keys))
    rows = workspace.result().select("n", "name", "age").rows()
    found = {n: (name, age) for n, name, age in rows}
    none = (None, None)
    ann, eve = ("Ann", 30), ("Eve", 3)
    assert found == {0: ann, 1: none, 2: ann, 3: none, 4: ann, 5: none, 6: none, 7: eve}
    dead_letters = {(each["node"], each["code"]) for each in workspace.dead_letters()}
    assert dead_letters == {("users", "wrong-type"), ("users", "http-422")}
