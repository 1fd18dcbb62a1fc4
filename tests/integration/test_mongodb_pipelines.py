"""Pipelines from collections of MongoDB to collections of MongoDB."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from decimal import Decimal
from typing import Any

from bson import Decimal128, ObjectId
from pipelines import Workspace

from servers.ferretdb import PASSWORD, USER, FerretDb
from servers.mongodb import ReplicaSet

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


CHANGES = """\
name: copied
sources:
  orders:
    type: mongodb
    url: {url}
    collection: {name}
    changes: true
    on_data_loss: snapshot
    schema: _id STRING, customer STRING, amount DECIMAL(10, 2)
transforms:
  by_customer: {{type: sql, sql: "SELECT customer, sum(amount) AS total FROM orders GROUP BY 1"}}
sinks:
  copy: {{type: sqlite, from: orders, path: copy.db, table: orders, mode: upsert, primary_key: _id}}
  totals:
    {{type: sqlite, from: by_customer, path: copy.db, table: totals, mode: upsert,
      primary_key: customer}}
"""


def test_changes_become_a_copy_and_totals(replica_set: ReplicaSet, workspace: Workspace) -> None:
    """Changes between runs reach both tables; so do those after a loss, which is a dead letter."""
    name = f"c{ObjectId()}"
    text = CHANGES.format(url=replica_set.url, name=name)
    with closing(replica_set.client()) as client:
        orders = client["shop"][name]
        orders.insert_many(
            [
                {"_id": f"{n:03}", "customer": f"c{n % 5}", "amount": Decimal128(str(n))}
                for n in range(200)
            ]
        )
        for part in range(3):
            workspace.run(text, until="caught_up")
            documents = [(d["_id"], d["customer"], str(d["amount"])) for d in orders.find()]
            with closing(sqlite3.connect(workspace.root / "copy.db")) as db:
                rows = db.execute("SELECT _id, customer, amount FROM orders").fetchall()
                found = dict(db.execute("SELECT customer, total FROM totals").fetchall())
            as_numbers = [[(i, c, Decimal(n)) for i, c, n in each] for each in (documents, rows)]
            assert sorted(as_numbers[0]) == sorted(as_numbers[1])
            totals: dict[str, Decimal] = {}
            for _, customer, amount in as_numbers[0]:
                totals[customer] = totals.get(customer, Decimal()) + amount
            assert {each: Decimal(total) for each, total in found.items()} == totals
            orders.update_many({"_id": {"$lt": "050"}}, {"$set": {"amount": Decimal128("0.5")}})
            orders.insert_one({"_id": f"new {part}", "customer": "c9", "amount": Decimal128("7")})
            if part == 0:
                orders.delete_many({"_id": {"$gte": "150", "$lt": "200"}})
            else:
                replica_set.truncate_oplog()
    (letter,) = workspace.dead_letters("copied")
    assert letter["code"] == "data-gone" and letter["node"] == "orders"
