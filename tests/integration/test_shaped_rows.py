"""Transforms that shape rows: all of them in one pipeline, with failing rows in each batch."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest
from pipelines import Row, Workspace

from penstock.connectors import memory

pytestmark = pytest.mark.spark

PIPELINE = """
sources:
  events:
    type: files
    path: events/*.jsonl
    max_files: 1
    schema:
      id: INT
      body: STRING
      tags: ARRAY<STRING>
      marks: MAP<STRING, INT>
      user: "STRUCT<name: STRING, home: STRUCT<city: STRING>>"
      text: STRING
      amount: DOUBLE
  changes:
    type: files
    path: changes/*.jsonl
    schema: id INT, amount INT, _op STRING
    operation_column: _op
    primary_key: [id]
transforms:
  decoded:
    {type: decode, from: events, column: body, format: json, schema: "a INT, b INT", columns: [a]}
  encoded: {type: encode, from: decoded, columns: [id, a], column: payload, format: csv}
  payloads: {type: select, from: encoded, columns: [payload]}
  unnested:
    {type: unnest, from: events, column: Tags, value_column: tag, position_column: at, outer: true}
  tags: {type: select, from: unnested, columns: [id, at, tag]}
  entries: {type: unnest, from: events, column: marks}
  marks: {type: select, from: entries, columns: [id, key, value]}
  flat: {type: flatten, from: events, separator: "."}
  names: {type: select, from: flat, columns: [id, "`user.name`", "`user.home.city`"]}
  shallow: {type: flatten, from: events, columns: [user], depth: 1}
  cities: {type: select, from: shallow, columns: [id, user_home.city]}
  typed: {type: cast, from: events, columns: {Text: INT}}
  complete: {type: default, from: typed, columns: {text: -1, amount: 0.5, added: new}}
  numbers: {type: select, from: complete, columns: [id, text, amount, added]}
  masked:
    type: mask
    from: flat
    columns:
      user.name: {keep_last: 2}
      text: {pattern: "[0-9]+", replacement: "#"}
      user.home.city: {hash: sha256, secret: key-of-hashes}
      id: hash
  seen: {type: log, from: masked, message: masked, columns: [id]}
  hidden:
    {type: select, from: seen, columns: [id, "`user.name` AS n", text, "`user.home.city` AS city"]}
  sampled: {type: sample, from: events, every: 3, key_columns: [id]}
  sampled_ids: {type: select, from: sampled, columns: [id]}
  checked:
    type: expect
    from: events
    rules: {has amount: amount IS NOT NULL, positive: amount > 0}
  valid: {type: select, from: checked, columns: [id]}
  router:
    type: route
    from: events
    outputs: {large: amount > 100, numbers: CAST(text AS INT) >= 0}
    default: other
  both: {type: route, from: router.large, match: all, outputs: {x: id > 8, y: id = 9}, default: z}
  ids: {type: sql, sql: "SELECT large.id, 'large' AS output FROM Router.large WHERE large.id >= 0"}
  rest: {type: map, from: router.other, set: {output: "'other'"}}
  kept: {type: expect, from: changes, rules: {no zero: amount <> 0}}
  divided: {type: route, from: kept, outputs: {high: amount >= 10}, default: low}
sinks:
"""
SINKS = [
    "payloads", "tags", "marks", "names", "cities", "numbers", "hidden", "sampled_ids", "valid",
    "ids", "rest", "router.numbers", "both.x", "both.y", "both.z",
]  # fmt: skip


def events() -> list[Row]:
    """Returns rows, of which every fifth one has no payload, no number and a small amount."""
    return [
        {
            "id": number,
            "body": json.dumps({"a": number, "b": 1}) if number % 5 else "{",
            "tags": [f"t{n}" for n in range(number % 3)],
            "marks": {f"m{n}": n for n in range(number % 3)},
            "user": {"name": f"Ann{number}", "home": {"city": "Bonn"} if number % 2 else None},
            "text": str(number) if number % 5 else "none",
            "amount": None if number == 3 else float(number * 25 - 50),
        }
        for number in range(12)
    ]


CHANGES = [
    {"id": 1, "amount": 5, "_op": "i"}, {"id": 2, "amount": 50, "_op": "i"},
    {"id": 1, "amount": 20, "_op": "u"}, {"id": 2, "amount": 60, "_op": "u"},
    {"id": 3, "amount": 1, "_op": "i"}, {"id": 3, "amount": 0, "_op": "d"},
    {"id": 4, "amount": 0, "_op": "i"},
]  # fmt: skip


def rows_of(workspace: Workspace, name: str) -> list[Any]:
    """Returns the rows of a sink, which has no table without rows."""
    return workspace.result(name).rows() if name in memory.tables else []


def test_rows_are_shaped_and_bad_ones_are_dead_letters(workspace: Workspace) -> None:
    rows = events()
    workspace.put_rows("events", rows, files=2)
    workspace.put_rows("changes", CHANGES, files=1)
    sinks = [f"  out{n}: {{type: memory, from: {name}}}\n" for n, name in enumerate(SINKS)]
    changed = [
        f"  {name}: {{type: memory, from: divided.{name}, mode: upsert, primary_key: [id]}}\n"
        for name in ("high", "low")
    ]
    workspace.run(PIPELINE + "".join([*sinks, *changed]))
    found: dict[str, list[Any]] = {
        name: sorted(rows_of(workspace, f"out{n}"), key=str) for n, name in enumerate(SINKS)
    }
    valid = [row for row in rows if row["id"] % 5]

    def ids(name: str) -> set[int]:
        return {row[0] for row in found[name]}

    assert found["payloads"] == sorted((f"{row['id']},{row['id']}",) for row in valid)
    tags = [(r["id"], n, f"t{n}") for r in rows for n in range(len(r["tags"]))]
    empty = [(r["id"], None, None) for r in rows if not r["tags"]]
    assert found["tags"] == sorted([*tags, *empty], key=str)
    marks = [(r["id"], key, value) for r in rows for key, value in r["marks"].items()]
    assert found["marks"] == sorted(marks, key=str)
    city = [(r["id"], r["user"]["name"], "Bonn" if r["user"]["home"] else None) for r in rows]
    assert found["names"] == sorted(city, key=str)
    assert found["cities"] == sorted([(id_, home) for id_, _, home in city], key=str)
    amounts = [
        (r["id"], r["id"], 0.5 if r["amount"] is None else r["amount"], "new") for r in valid
    ]
    assert found["numbers"] == sorted(amounts, key=str)

    keyed = hmac.new(b"key-of-hashes", b"Bonn", hashlib.sha256).hexdigest()
    hidden = [
        (
            hashlib.sha256(str(id_).encode()).hexdigest(),
            f"{'*' * (len(name) - 2)}{name[-2:]}",
            "#" if id_ % 5 else "none",
            keyed if home else None,
        )
        for id_, name, home in city
    ]
    assert found["hidden"] == sorted(hidden, key=str)
    assert 0 < len(found["sampled_ids"]) < len(rows)
    assert ids("valid") == {row["id"] for row in rows if (row["amount"] or 0) > 0}

    large = {row["id"] for row in rows if (row["amount"] or 0) > 100}
    assert found["ids"] == sorted([(id_, "large") for id_ in large], key=str)
    assert large == {7, 8, 9, 10, 11}
    assert (ids("both.x"), ids("both.y"), ids("both.z")) == ({9, 10, 11}, {9}, {7, 8})
    assert ids("router.numbers") == {r["id"] for r in valid} - large
    assert ids("rest") == set()
    assert sorted(rows_of(workspace, "high")) == [(1, 20), (2, 60)]
    assert rows_of(workspace, "low") == []

    letters = sorted(
        (letter["node"], letter["code"], json.loads(letter["payload"])["id"])
        for letter in workspace.dead_letters()
    )
    failing = {row["id"] for row in rows if not row["id"] % 5}
    expected = [("decoded", "not-json", id_) for id_ in failing]
    expected += [("typed", "cast-invalid-input", id_) for id_ in failing]
    expected += [("router", "cast-invalid-input", id_) for id_ in failing - large]
    expected += [
        ("checked", "rule-broken", row["id"]) for row in rows if not (row["amount"] or 0) > 0
    ]
    expected += [("kept", "rule-broken", 4)]
    assert letters == sorted(expected)
    reasons = {letter["message"] for letter in workspace.dead_letters()}
    assert "the row breaks rules: has amount, positive" in reasons
