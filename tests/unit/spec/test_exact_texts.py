"""Texts of a pipeline stay the same, character for character, in YAML and in SQL scripts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.spec.documents.reading import load
from penstock.spec.script.writer import to_script
from penstock.spec.yaml.writer import convert

_PARTS = [
    "a", "b: c", "# d", "- e", "'", '"', "\\", "\\n", " ", "  ", "\t", "\n", "\n\n", "\r", "\r\n",
    "\x0b", "\x0c", "\x1b", "\x7f", "\x85", "\xa0", "\u2028", "\u2029", "\ufeff", "é", "\U0001f600",
    "---", "...", "%", "`", "|", ">", "{", "[", "!", "&", "*", "?", "~", ";", "$x",
]  # fmt: skip
_TEXTS = [
    "", " ", "\n", "\n\n", " \n", "a\n", "a\n\n", "a \nb", "a\n  ", "\n a", "  a\nb", "\ta\nb",
    "a\n\tb", "a\tb\n", "a\rb", "a\r\nb", "a\u2028b", "a\u2028b\nc", "a\x0cb\nc", "a\x85b\nc",
    "\n   \n a", "a\n---\nb", "1", "012", "1e3", "0x1f", "0o7", ".5", "+1", "1_000", "0b1",
    "null", "~", "yes", "true", ".inf", ".nan", "2024-01-01", "12:30:00", "=", "<<", "x y " * 3000,
    "x\n" + "y z " * 3000, "- a", "a: b", "a #b", "'a'", '"a"', "a\n# b\n", "\\t", "\U0001f600\n",
]  # fmt: skip


def _texts() -> Iterator[str]:
    """Yields the texts, and random ones: each part begins two of them and ends two others."""
    yield from _TEXTS
    seeded = random.Random(11)
    for number in range(4 * len(_PARTS)):
        part = _PARTS[number % len(_PARTS)]
        others = "".join(seeded.choices(_PARTS, k=seeded.randint(1, 7)))
        yield part + others if number < 2 * len(_PARTS) else others + part


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


def _pipeline(texts: list[str]) -> dict[str, Any]:
    rows = [{"x": text} for text in texts]
    options = {f"o{number}": text for number, text in enumerate(texts)}
    source = {"type": "memory", "list": texts, "rows": rows, "headers": options}
    return {"name": "texts", "sources": {"a": source}}


@pytest.mark.slow
def test_the_yaml_has_the_same_texts(tmp_path: Path) -> None:
    data = _pipeline([*_texts()])
    keys = dict.fromkeys(data["sources"]["a"]["list"], 1)
    del keys["<<"]
    data["sources"]["a"]["keys"] = {key: 1 for key in keys if key[:1] not in ("\xa0", "\ufeff")}
    # PyYAML writes each character outside ASCII as an escape.
    first = _write(tmp_path / "first.yaml", yaml.safe_dump(data, default_style='"', width=10**9))
    expected = load([first]).root.data()
    again = _write(tmp_path / "again.yaml", convert([str(first)]))
    found = load([again]).root.data()
    assert found["sources"]["a"]["list"] == [*_texts()]
    assert found == expected


@pytest.mark.slow
def test_the_script_has_the_same_texts(tmp_path: Path) -> None:
    data = _pipeline([*_texts()])
    del data["sources"]["a"]["rows"]
    first = _write(tmp_path / "first.yaml", yaml.safe_dump(data, default_style='"', width=10**9))
    script = _write(tmp_path / "first.sql", to_script([str(first)]).text)
    again = _write(tmp_path / "again.yaml", convert([str(script)]))
    for path in (script, again):
        assert load([path]).root.data()["sources"] == data["sources"]


def _query(text: str) -> str:
    literal = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"SELECT id, '{literal}' AS x FROM a -- {text.splitlines()[:1]}\n WHERE id > 1"


def _code(text: str) -> str:
    return f"\n\n  def f(x):   \n\treturn x + {text!r} # {text}"


@pytest.mark.quick(1)
@pytest.mark.parametrize("has_dollar", [False, True])
@pytest.mark.parametrize("part", range(5))
def test_queries_and_code_stay_the_same(part: int, has_dollar: bool, tmp_path: Path) -> None:
    texts = [text for text in _texts() if ("$" in text) == has_dollar][part::5]
    script = _write(
        tmp_path / "a.sql",
        "CREATE TABLE a (id INT) WITH (connector = 'memory');\n"
        + "".join(
            f"CREATE FUNCTION f{number}(x STRING) RETURNS STRING LANGUAGE PYTHON "
            f"AS $py${_code(text)}$py$;\nCREATE VIEW b{number} AS {_query(text)};\n"
            for number, text in enumerate(texts)
        ),
    )
    converted = _write(tmp_path / "b.yaml", convert([str(script)]))
    expected, found = (load([path]).root.data() for path in (script, converted))
    queries = {f"b{number}": _query(text) for number, text in enumerate(texts)}
    assert {name: each["sql"] for name, each in found["transforms"].items()} == queries
    assert found == expected
    if not has_dollar:
        again = _write(tmp_path / "c.sql", to_script([str(converted)]).text)
        assert load([again]).root.data() == expected
