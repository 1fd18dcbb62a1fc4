"""Each rule of translation has texts and their translations beside them.

A statement is a line, or several indented lines. PENSTOCK_UPDATE_GOLDEN=1 writes the translations.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.sql.dialect.bind import bind
from penstock.sql.dialect.relation import InputRelation, Output
from penstock.sql.dialect.translate import translate
from penstock.sql.text.edits import Translation

DIALECT = Path(__file__).parent / "dialect"
FILES = sorted(path.name for path in DIALECT.glob("*.sql"))
EVENTS = InputRelation("t", Output("at"), has_watermark=True)
RELATIONS = {
    "t": EVENTS,
    "v": InputRelation("v", Output(), "SELECT u, n FROM t WHERE n > 1", {"t": EVENTS}, True),
    "w": InputRelation("w", Output(None, {"window": ("tumble", 60.0, 60.0)}), None, {}, True),
}


def statements(text: str) -> Iterator[str]:
    lines = text.splitlines()
    while lines:
        statement = [lines.pop(0)]
        while lines and lines[0].startswith(" "):
            statement.append(lines.pop(0))
        yield "\n".join(statement)


def translated(statement: str) -> Translation:
    return bind(translate(statement), RELATIONS).translation


@pytest.mark.parametrize("name", FILES)
def test_translation(name: str) -> None:
    golden = (DIALECT / name).with_suffix(".txt")
    text = (DIALECT / name).read_text(encoding="utf-8")
    found = "".join(f"{translated(each).text}\n" for each in statements(text))
    if os.environ.get("PENSTOCK_UPDATE_GOLDEN"):
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FILES)
def test_a_translation_is_not_translated_again(name: str) -> None:
    for statement in statements((DIALECT / name).read_text(encoding="utf-8")):
        text = translate(statement).text
        assert translate(text).text == text


def test_spark_sql_stays_as_it_is() -> None:
    text = (DIALECT / "spark.sql").read_text(encoding="utf-8")
    assert text == (DIALECT / "spark.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FILES)
def test_origins(name: str) -> None:
    """Each word that a translation keeps has its place in the statement as its origin."""
    for statement in statements((DIALECT / name).read_text(encoding="utf-8")):
        translation = translated(statement)
        for start, origin, verbatim in translation.pieces:
            if verbatim and start < len(translation.text):
                assert translation.text[start] == statement[origin]
