"""Whole pipelines over nested rows, and over text files of other headers and encodings."""

from __future__ import annotations

import random

import polars as pl
import pytest
from pipelines import Row, Workspace, assert_same_rows, dump

pytestmark = pytest.mark.spark

BASKETS = """
sources:
  baskets:
    type: files
    path: baskets/*.jsonl
    schema:
      id: BIGINT
      items: "ARRAY<STRUCT<sku: STRING, quantity: INT, price: BIGINT>>"
      attributes: STRING
transforms:
  parsed: {type: map, from: baskets, set: {attributes: parse_json(attributes)}}
  lines:
    type: sql
    sql: |
      SELECT id, number, item.sku AS sku, item.quantity * item.price AS total,
             variant_get(attributes, '$.channel.name', 'string') AS channel
      FROM parsed LATERAL VIEW posexplode(items) AS number, item
  skus:
    type: sql
    sql: SELECT sku, channel, sum(total) AS total FROM lines GROUP BY sku, channel
sinks:
  lines_out: {type: files, from: lines, path: lines, format: json}
  baskets_out: {type: files, from: parsed, path: copies, format: json}
  skus_out: {type: memory, from: skus, mode: upsert, primary_key: [sku, channel]}
"""


def test_exploded_arrays_and_variant_columns(workspace: Workspace) -> None:
    chance = random.Random(19)
    rows = [_basket(number, chance) for number in range(200)]
    workspace.put_rows("baskets", rows)
    workspace.run(BASKETS)
    copies = pl.read_ndjson(workspace.root / "copies" / "*.jsonl")
    assert_same_rows(copies, pl.read_ndjson("\n".join(map(dump, rows)).encode()))

    lines = (
        pl.DataFrame({"id": row["id"], "number": number, **item, "channel": _channel(row)}
                     for row in rows for number, item in enumerate(row["items"] or ()))
        .with_columns((pl.col("quantity") * pl.col("price")).alias("total"))
        .select("id", "number", "sku", "total", "channel")
    )  # fmt: skip
    assert_same_rows(pl.read_ndjson(workspace.root / "lines" / "*.jsonl"), lines)
    skus = lines.group_by("sku", "channel").agg(pl.col("total").sum())
    assert_same_rows(workspace.result("skus_out"), skus)


def _basket(number: int, chance: random.Random) -> Row:
    items = [
        {"sku": f"s{chance.randrange(10)}", "quantity": chance.randrange(1, 5), "price": 100 + n}
        for n in range(chance.randrange(4))
    ]
    attributes = {"channel": {"name": chance.choice(["web", "shop"])}, "tags": [number, "ä"]}
    return {
        "id": number,
        "items": items if number % 10 else None,
        "attributes": attributes if number % 7 else None,
    }


def _channel(row: Row) -> str | None:
    attributes = row["attributes"]
    return attributes["channel"]["name"] if attributes else None


PEOPLE = """
sources:
  plain: {type: files, path: plain/*.csv, format: csv, schema: SCHEMA}
  german:
    type: files
    path: german/*.csv
    format: {type: csv, delimiter: ";", encoding: latin-1, missing_columns: "null"}
    schema: SCHEMA
transforms:
  people:
    type: sql
    sql: |
      SELECT id, name, city, 'plain' AS origin FROM plain
      UNION ALL SELECT id, name, city, 'german' AS origin FROM german
sinks:
  out: {type: memory, from: people}
""".replace("SCHEMA", "{id: BIGINT, name: STRING, city: STRING}")
NAMES = ["Zoë", "Jürgen", "Ann", "Åse"]
CITIES = ["Köln", "Genève", "Málaga"]


def test_files_of_other_headers_and_encodings(workspace: Workspace) -> None:
    """Headers in other case and order, with other columns or without one; UTF-8 and UTF-16 with
    byte order marks, UTF-8 without, and Latin-1. Two lines have no valid ID."""
    chance = random.Random(20)
    people = pl.DataFrame(
        {"id": number, "name": chance.choice(NAMES), "city": chance.choice(CITIES)}
        for number in range(250)
    )
    parts = people.with_columns(other=pl.lit(1)).iter_slices(50)
    workspace.put("plain/a.csv", _csv(next(parts), "id,name,city"))
    workspace.put("plain/b.csv", _csv(next(parts), "CITY,Id,other,Name"), "utf-8-sig")
    workspace.put("plain/c.csv", [*_csv(next(parts), "name,city,id"), "Ann,Köln,?"], "utf-16")
    workspace.put("german/d.csv", _csv(next(parts), "id;name;city"), "latin-1")
    workspace.put("german/e.csv", [*_csv(next(parts), "name;id"), "Ann;1.5"], "latin-1")
    workspace.run(PEOPLE)

    number = pl.col("id")
    expected = people.with_columns(
        pl.when(number < 200).then("city"),
        pl.when(number < 150).then(pl.lit("plain")).otherwise(pl.lit("german")).alias("origin"),
    )
    assert_same_rows(workspace.result(), expected)
    dead_letters = {(letter["node"], letter["code"]) for letter in workspace.dead_letters()}
    assert dead_letters == {("plain", "wrong-type"), ("german", "wrong-type")}


def test_a_file_with_a_wrong_header_is_read_after_its_correction(workspace: Workspace) -> None:
    people = pl.DataFrame({"id": n, "name": NAMES[n % 4], "city": CITIES[n % 3]} for n in range(90))
    workspace.put("german/empty.csv", ["id;name"])
    workspace.put("plain/a.csv", _csv(people[:60], "id,name,city"))
    workspace.put("plain/b.csv", _csv(people[60:], "id;name;city"))
    outcome = workspace.start(PEOPLE).wait(60)
    assert outcome is not None
    (error,) = outcome.errors.values()
    assert (error.code, error.hint) == ("wrong-header", 'Set delimiter: ";".')
    workspace.put("plain/b.csv", _csv(people[60:], "id,name,city"))
    workspace.run(PEOPLE.replace("path: plain", "on_changed: continue, path: plain"))
    expected = people.with_columns(pl.lit("plain").alias("origin"))
    assert_same_rows(workspace.result(), expected)


def _csv(people: pl.DataFrame, header: str) -> list[str]:
    delimiter = ";" if ";" in header else ","
    columns = people.select(header.lower().split(delimiter))
    lines = columns.write_csv(separator=delimiter, include_header=False).splitlines()
    return [header, *lines]
