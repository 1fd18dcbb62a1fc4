"""Completion in YAML, also in texts that are incomplete."""

from __future__ import annotations

import pytest
from service_texts import SOURCES, complete, completed, labels

KAFKA = "sources:\n  clicks:\n    type: kafka\n"


def test_sections() -> None:
    assert labels("|~")[:2] == ["name", "description"]
    assert labels("name: a\ntr|~\n") == ["transforms"]
    assert "sources" not in labels(f"{SOURCES}|~\n"), "a section occurs once"


def test_options_of_the_type_come_first_and_required_ones_before_them() -> None:
    found = labels(f"{SOURCES}sinks:\n  out:\n    type: files\n    |~\n")
    assert found[:2] == ["from", "path"] or found[:2] == ["path", "from"]
    assert found.index("compression") < found.index("on_error")
    assert "type" not in found


def test_an_option_has_its_documentation() -> None:
    (item,) = complete(f"{KAFKA}    topi|~\n    group: g\n")
    assert (item.label, item.text, item.kind) == ("topic", "topic: ", "option")
    assert "The topic" in item.documentation and "text or list of text" in item.detail


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sources:\n  a: {type: kafka, bro|~", "brokers"),
        ("sources:\n  a: {type: files, format: {type: csv, deli|~}}\n", "delimiter"),
        ("sources:\n  a:\n    format:\n      type: csv\n      deli|~\n", "delimiter"),
        ("connections:\n  k:\n    type: kafka\n    bro|~", "brokers"),
        ("sources:\n  h:\n    type: hybrid\n    phases:\n    - {type: kafka, bro|~", "brokers"),
        ("dead_letter:\n  type: kafka\n  bro|~", "brokers"),
        ("runtime:\n  trig|~", "trigger"),
        ("tests:\n  - nam|~", "name"),
        ("connections:\n  k: {type: kafka}\nsources:\n  a: {connection: k, topi|~", "topic"),
        ("sinks:\n  o:\n    type: kafka\n    batch:\n      max_rec|~", "max_records"),
    ],
)  # fmt: skip
def test_maps_have_the_options_of_their_models(text: str, expected: str) -> None:
    assert labels(text)[0] == expected


def test_values() -> None:
    assert labels("sources:\n  a:\n    type: kaf|~") == ["kafka"]
    assert labels("sinks:\n  a:\n    type: kafka\n    mode: |~") == ["append", "upsert", "replace"]
    assert "csv" in labels("sources:\n  a:\n    type: files\n    format: |~")
    assert labels("sources:\n  a:\n    type: files\n    static: |~") == ["true", "false"]
    assert labels("connections: {k: {type: kafka}}\nsources:\n  a: {connection: |~") == ["k"]


def test_nodes_where_a_node_is_expected() -> None:
    text = (
        f"{SOURCES}transforms:\n  late: {{type: filter, from: |~}}\nsinks:\n  o: {{from: late}}\n"
    )
    assert labels(text) == ["orders", "names"], "neither the node itself nor a sink"
    text = f"{SOURCES}transforms:\n  t: {{type: lookup, from: orders, table: |~}}\n"
    assert labels(text) == ["orders", "names"]
    assert labels(f"{SOURCES}tests:\n  - name: a\n    given:\n      |~\n") == ["orders", "names"]


@pytest.mark.parametrize(
    "text",
    [
        "transforms:\n  t: {type: dedupe, from: orders, keys: [|~]}\n",
        "transforms:\n  t:\n    type: dedupe\n    from: orders\n    keys:\n      - |~\n",
        "transforms:\n  t: {type: drop, from: orders, columns: [|~",
        "sinks:\n  o: {type: print, from: orders, primary_key: |~}\n",
        "sinks:\n  o: {type: kafka, from: orders, partition_column: |~}\n",
    ],
)
def test_columns_of_the_input(text: str) -> None:
    assert labels(SOURCES + text)[:3] == ["id", "customer", "at"]


def test_columns_follow_from_transforms() -> None:
    """Columns of other transforms come from the plan of the valid part of the text."""
    text = (
        f"{SOURCES}transforms:\n"
        "  renamed: {type: rename, from: orders, columns: {id: number}}\n"
        "  counted:\n    type: sql\n    sql: |\n"
        "      SELECT number, count(*) AS n FROM renamed GROUP BY number\n"
        "sinks:\n  o: {type: print, from: counted, primary_key: [|~]}\n"
    )
    assert labels(text) == ["number", "n"]


def test_sql_in_values() -> None:
    query = f"{SOURCES}transforms:\n  t:\n    type: sql\n    sql: |\n      SELECT "
    assert labels(f"{query}|~ FROM orders\n")[:3] == ["id", "customer", "at"]
    joined = f"{query}n.|~\n      FROM orders JOIN names n USING (customer)\n"
    assert labels(joined) == ["customer", "name"]
    condition = f"{SOURCES}transforms:\n  t: {{type: filter, from: orders, where: cust|~}}\n"
    assert labels(condition)[0] == "customer"
    quoted = (
        f"{SOURCES}transforms:\n  t: {{type: filter, from: orders, where: 'id > 1 AND cu|~'}}\n"
    )
    assert completed(quoted, "customer").rstrip().endswith("where: 'id > 1 AND customer'}")


@pytest.mark.slow
def test_new_nodes_are_snippets() -> None:
    item = next(each for each in complete("sinks:\n  |~\n") if each.label == "files")
    assert item.snippet and item.text == "${1:files}:\n  type: files\n  from: ${2}\n  path: ${3}"


def test_accepted_text_replaces_the_whole_word() -> None:
    text = "sources:\n  a:\n    ty|~px: kafka\n"
    assert completed(text, "type") == "sources:\n  a:\n    type: kafka\n"


@pytest.mark.parametrize(
    "text",
    ["name: a # so|~", "sources:\n  # ty|~\n", "name: |~", "description: |\n  sou|~\n"],
)
def test_nothing_in_comments_and_texts(text: str) -> None:
    assert labels(text) == []
