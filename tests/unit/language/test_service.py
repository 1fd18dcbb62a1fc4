"""Diagnostics with fixes, documentation, definitions, symbols, and texts that are broken."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from service_texts import SOURCES, SQL, YAML, hover, place

from penstock.core.error_codes import ERROR_CODES
from penstock.language import service
from penstock.language.document import Document
from penstock.language.model import Position

ROOT = Path(__file__).parents[3]
WRONG = ROOT / "tests" / "golden" / "wrong"


def fixed(text: str, path: Path = YAML) -> list[str]:
    """Returns the errors that remain after the first fix of each error, applied alone."""
    document = Document(path, text)
    diagnosis = service.diagnose(document)
    left = []
    for error in diagnosis.result.errors:
        fixes = diagnosis.fixes_of(error)
        assert fixes, error.message
        after = service.diagnose(Document(path, document.edited(fixes[0].edits)))
        same = (
            e for e in after.result.errors if e.message == error.message or e.code == "invalid-yaml"
        )
        left += [each.message for each in same]
    return left


@pytest.mark.parametrize(
    "text",
    [
        "sources:\n  a: {type: impulse}\nsinks:\n  o: {type: print, from: A}\n",
        "sources:\n  a: {type: impuls, rat: 1}\nsinks:\n  o: {type: print, from: a}\n",
        "sources:\n  a: {type: 'impuls'}\nsinks:\n  o: {type: print, from: a}\n",
        "source:\n  a: {type: impulse}\nsinks:\n  o: {type: print, from: a}\n",
        "sources:\n  a: {type: impulse}\nsinks:\n  o:\n    from: a\n",
    ],
)  # fmt: skip
def test_the_first_fix_corrects_an_error(text: str) -> None:
    assert fixed(text) == []


@pytest.mark.slow
def test_fixes_of_the_wrong_files_correct_their_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fixes of a sample of the files with all kinds of errors."""
    monkeypatch.chdir(WRONG)
    corrected = 0
    for path in sorted(Path().glob("[0-9]*.yaml"))[::5]:
        content = path.read_bytes()
        if content.startswith((b"# run", b"# convert")) or b"preprocess" in content:
            continue
        document = Document(path, content.decode())
        diagnosis = service.diagnose(document)
        for error in diagnosis.result.errors:
            for fix in diagnosis.fixes_of(error)[:1]:
                after = service.diagnose(Document(path, document.edited(fix.edits))).result
                same = [
                    e for e in after.errors if (e.message, e.where) == (error.message, error.where)
                ]
                assert not same, f"{path}: {error.message}: {fix.title}"
                corrected += 1
    assert corrected > 10


def test_hover_in_yaml() -> None:
    assert "`type`" in hover("sources:\n  a:\n    ty|~pe: kafka\n")
    assert "Apache Kafka" in hover("sources:\n  a:\n    type: kaf|~ka\n")
    assert "customer STRING" in hover(f"{SOURCES}sinks:\n  o: {{type: print, from: or|~ders}}\n")
    assert "at TIMESTAMP" in hover(SOURCES.replace("orders", "or|~ders"))
    text = f"{SOURCES}transforms:\n  t: {{type: dedupe, from: orders, keys: [cust|~omer]}}\n"
    assert "`customer STRING` of orders" in hover(text)
    assert hover("name: so|~mething").startswith("`name`: text\n\nThe name of the pipeline.")


def test_hover_over_an_error_has_the_meaning_of_its_code() -> None:
    document, position = place("sources:\n  a: {type: kaf|~k}\n")
    service.diagnose(document)
    found = service.hover(document, position)
    assert found and ERROR_CODES["unknown-type"] in found.text


def test_definitions() -> None:
    document, position = place(f"{SOURCES}sinks:\n  o: {{type: print, from: na|~mes}}\n")
    target = service.definition(document, position)
    assert target and document.slice(target.range) == "names"
    assert target.range.start == Position(3, 3)
    document, position = place("CREATE VIEW v AS SELECT 1 AS a;\nSELECT * FROM |~v;", SQL)
    target = service.definition(document, position)
    assert target and target.range.start == Position(1, 13)


def test_symbols() -> None:
    text = f"name: shop\n{SOURCES}sinks:\n  out:\n    type: print\n    from: orders\n"
    found = service.symbols(Document(YAML, text))
    assert [each.name for each in found] == ["name", "sources", "sinks"]
    assert [(c.name, c.kind, c.detail) for c in found[1].children] == [
        ("orders", "source", "files"), ("names", "source", "files"),
    ]  # fmt: skip
    script = "CREATE TABLE a (id INT) WITH (connector = 'print');\nINSERT INTO a SELECT 1 AS id;\n"
    assert [each.name for each in service.symbols(Document(SQL, script))] == ["a", "INSERT INTO a"]


@pytest.mark.slow
def test_broken_texts_are_answered() -> None:
    """Random cuts and signs in texts of all kinds: every request has an answer."""
    chance = random.Random(7)
    paths = [*ROOT.glob("examples/*/*.yaml"), *ROOT.glob("examples/*/*.sql")]
    signs = [
        "{",
        "[",
        "'",
        '"',
        "(",
        "|",
        "- ",
        ": ",
        "\t",
        "`",
        "$$",
        "/*",
        "--",
        "é🙂",
        "WITH (",
        ")",
    ]
    for _ in range(60):
        path = chance.choice(paths)
        text = path.read_text()[:4000]
        start = chance.randrange(len(text))
        text = text[:start] + chance.choice(signs) + text[start + chance.choice([0, 1, 30, 5000]) :]
        document = Document(path, text)
        position = document.position(min(start + chance.randrange(3), len(text)))
        service.complete(document, position)
        service.hover(document, position)
        service.definition(document, position)
        service.symbols(document)
