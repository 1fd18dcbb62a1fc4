"""Pipelines from collections of MongoDB to collections of MongoDB."""

from __future__ import annotations

from typing import Any

from bson import ObjectId
from pipelines import Workspace

from servers.ferretdb import PASSWORD, USER, FerretDb

PIPELINE = """\
name: shop
connections:
  db:
    url: {url}
    auth: {{username: {user}, password: "${{SHOP_PASSWORD}}"}}
sources:
  orders:
    type: mongodb
    connection: db
    collection: {name}
    filter: {{n: {{$lt: 270}}}}
    max_records: 150
    schema: _id STRING, n INT, customer BIGINT, tags MAP<STRING, INT>
  customers:
    type: mongodb
    connection: db
    collection: {name}_customers
    id_column: id
    schema: id BIGINT, city STRING
    lookup: true
transforms:
  joined:
    type: sql
    sql: SELECT o._id, n, city, tags FROM orders o LEFT JOIN customers c ON o.customer = c.id
sinks:
  copy:
    type: mongodb
    connection: db
    from: joined
    collection: {name}_copy
    mode: upsert
    primary_key: [_id]
    object_id_columns: [_id]
"""


def test_documents_are_joined_and_copied_and_bad_ones_are_dead_letters(
    ferretdb: FerretDb, workspace: Workspace, monkeypatch: Any
) -> None:
    name = ferretdb.new_collection()
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    documents: list[dict[str, Any]] = [
        {"_id": ObjectId(), "n": n, "customer": n % 5, "tags": {"a": n}} for n in range(300)
    ]
    documents[10]["n"] = 1.5
    documents[20]["tags"] = {"a": "many"}
    ferretdb.insert(name, *documents)
    ferretdb.insert(f"{name}_customers", *({"_id": n, "city": f"c{n}"} for n in range(4)))
    text = PIPELINE.format(url=ferretdb.url, user=USER, name=name)
    workspace.run(text)
    bad = (10, 20)
    expected = [
        {"_id": each["_id"], "n": n, "city": f"c{n % 5}" if n % 5 < 4 else None, "tags": {"a": n}}
        for n, each in enumerate(documents[:270])
        if n not in bad
    ]
    assert ferretdb.documents(f"{name}_copy") == expected
    letters = workspace.dead_letters("shop")
    assert [letter["code"] for letter in letters] == ["wrong-type"] * 2
    assert PASSWORD not in str(letters)
