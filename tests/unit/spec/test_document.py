"""Reading YAML: values, places, and what cannot be read."""

from __future__ import annotations

import io
import math
from pathlib import Path

import pytest

from penstock.core.errors import SpecError
from penstock.core.paths import ConfigStr
from penstock.spec.tree.document import Document
from penstock.spec.tree.nodes import ScalarNode
from penstock.spec.yaml.parse import parse_document, read_document


def scalar(document: Document, *route: str | int) -> ScalarNode:
    node = document.require_node(route)
    assert isinstance(node, ScalarNode)
    return node


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), ("-17", -17), ("0x1F", 31), ("0o17", 15), ("010", 10), ("1_000", "1_000"),
        ("1.5", 1.5), ("1e3", 1000.0), (".5", 0.5), (".inf", math.inf), ("-.inf", -math.inf),
        ("true", True), ("False", False), ("yes", "yes"), ("on", "on"), ("NO", "NO"),
        ("null", None), ("~", None), ("", None), ("2024-05-01", "2024-05-01"),
        ("12:30:45", "12:30:45"), ("2024-05-01T10:00:00Z", "2024-05-01T10:00:00Z"),
        ("'1'", "1"), ('"true"', "true"), ("!!str 5", "5"), ("9" * 500, "9" * 500),
    ],
)  # fmt: skip
def test_core_schema(text: str, value: object) -> None:
    found = scalar(parse_document(f"a: {text}\n"), "a").data()
    assert found == value
    assert type(found) is (ConfigStr if isinstance(value, str) else type(value))


def test_keys_are_text() -> None:
    document = parse_document("5: a\ntrue: b\non: c\n~: d\n")
    assert document.root.names() == ["5", "true", "on", "~"]


def test_text_knows_its_directory(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a: b\n")
    text = scalar(read_document(path), "a").data()
    assert (text, text.base) == ("b", tmp_path)


def test_places() -> None:
    document = parse_document("a:\n  - b: 'c d'\n    e: {f: 1}\n", "x.yaml")
    where = document.value(("a", 0, "b"))
    assert (str(where), where.length, where.text) == ("x.yaml:2:8", 5, "  - b: 'c d'")
    assert str(document.key(("a", 0, "e"))) == "x.yaml:3:5"
    assert str(document.value(("a", 0, "e"))) == "x.yaml:3:8"
    assert str(document.value(("a",))) == "x.yaml:1:1"
    assert str(document.key(("a", 0, "missing", "deep"))) == "x.yaml:2:5"
    assert str(document.key(("nothing",))) == "x.yaml:1:1"
    with pytest.raises(KeyError):
        document.require_node(("a", 1))


LITERAL = "sql: |\n  SELECT a,\n\n    b\n  FROM é\nz: 1\n"
INDENTED = "sql: |2\n    SELECT a\n  FROM b\n"
FOLDED = "sql: >-\n  SELECT a,\n  b\n  FROM c\n"
PLAIN = "sql: SELECT a,\n  b\n  FROM c\n"
DOUBLE = 'sql: "SELECT \\"a\\",\\n b\\\n    , x\n  FROM c"\n'
SINGLE = "sql: 'it''s'\n"
LEADING = "sql: |\n\n\n  FROM c\n"


@pytest.mark.parametrize("text", [LITERAL, INDENTED, FOLDED, PLAIN, DOUBLE, SINGLE, LEADING])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_word_of_a_text_is_found_in_the_file(text: str, end: str) -> None:
    text = text.replace("\n", end)
    node = scalar(parse_document(text), "sql")
    assert isinstance(node.value, str)
    for number, line in enumerate(node.value.split("\n"), 1):
        for column, character in enumerate(line, 1):
            if character.isalnum():
                where = node.locate(number, column)
                assert where.text[where.column - 1] == character, (number, column, where)


def test_place_beyond_the_text() -> None:
    node = scalar(parse_document("a: |\n  b\n"), "a")
    assert node.locate(99, 99).line == 2
    assert node.locate(0, 0).column == 3


def test_anchors_and_merge_keys() -> None:
    document = parse_document(
        "base: &base {type: kafka, topic: a}\nmore: &more {group: g, topic: m}\n"
        "x: {<<: [*base, *more], topic: b}\ny: *base\n"
    )
    assert document.root.data()["x"] == {"topic": "b", "type": "kafka", "group": "g"}
    assert document.require_node(("y",)) is document.require_node(("base",))
    assert document.key(("x", "type")).line == 1


def test_a_key_named_by_a_quoted_merge_sign_is_a_key() -> None:
    assert parse_document('a: {"<<": 1}\n').root.data() == {"a": {"<<": 1}}


def test_all_duplicate_keys_are_reported() -> None:
    document = parse_document("a: 1\na: 2\nb: {c: 1, c: 2}\n")
    assert [each.code for each in document.errors] == ["duplicate-key", "duplicate-key"]
    assert document.root.data() == {"a": 1, "b": {"c": 1}}


def test_byte_order_mark() -> None:
    assert parse_document("\ufeffa: 1\n").key(("a",)).column == 1


def test_missing_file_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text("a: 1")
    with pytest.raises(SpecError) as caught:
        read_document(tmp_path / "shp.yaml")
    assert caught.value.code == "missing-file"
    assert "shop.yaml" in (caught.value.hint or "")


def test_missing_file_without_a_near_name_names_the_few_that_exist(tmp_path: Path) -> None:
    for number in range(4):
        with pytest.raises(SpecError) as caught:
            read_document(tmp_path / "flights.yaml")
        hint = caught.value.hint
        files = [f"{tmp_path / f'{letter}.yaml'}" for letter in "abcd"[:number]]
        assert hint == (f"pass {' or '.join(files)}" if number else None)
        (tmp_path / f"{'abcd'[number]}.yaml").write_text("")
        (tmp_path / f"{number}.sql").write_text("")
    with pytest.raises(SpecError) as caught:
        read_document(tmp_path / "flights.yaml")
    assert caught.value.hint is None


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"a: " + b"x" * 10 * 2**20, "file-too-large"),
        (b"a: 1\n\x80", "not-utf8"),
        (b"\x00", "invalid-yaml"),
        (b"{" * 5000, "too-deep"),
        (b"- " * 5000, "too-deep"),
        (b"\n".join(b" " * i + b"a:" for i in range(500)), "too-deep"),
        (b"a: " + b"[" * 99 + b"]" * 98, "invalid-yaml"),
    ],
    ids=["size", "encoding", "null", "braces", "lists", "indentation", "brackets"],
)
def test_unreadable(tmp_path: Path, data: bytes, code: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(data)
    with pytest.raises(SpecError) as caught:
        read_document(path)
    assert caught.value.code == code


def test_place_of_bytes_that_are_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes("a: é\nb: ".encode() + b"\xff")
    with pytest.raises(SpecError) as caught:
        read_document(path)
    assert caught.value.where is not None
    assert str(caught.value.where) == f"{path}:2:4"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a: 1\n")))
    document = read_document("-")
    assert document.files == ("<stdin>",)
    assert scalar(document, "a").base == Path.cwd()
