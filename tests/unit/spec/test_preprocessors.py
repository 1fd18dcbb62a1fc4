"""Preprocessors: directives, functions, and the places of errors."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from penstock import app
from penstock.core.errors import PenstockError, UserError, flatten_errors
from penstock.spec.preprocessing import original_lines, preprocess

TOOLS = """
def drop(text, options):
    return "\\n".join(line for line in text.split("\\n") if options["word"] not in line)

def add(text, options):
    return "# added\\n" * options["count"] + text

def name(text, options):
    return text.replace(options["old"], options["new"])

def fails(text, options):
    raise ValueError("no")

def nothing(text, options):
    pass
"""
PIPELINE = """\
# A comment.
# preprocess: tools:add {count: 3}
# preprocess: tools:name {old: TYPE, new: memory}
name: shop
sources:
  s: {type: TYPE, rows: [{id: 1}], schema: id INT}
sinks:
  out: {type: blackhole, from: s, %s}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    return tmp_path / "shop.yaml"


def errors_of(path: Path, text: str) -> list[PenstockError]:
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        app.plan(path)
    return list(flatten_errors(caught.value))


def test_a_pipeline_is_parsed_after_its_preprocessors(shop: Path) -> None:
    shop.write_text(PIPELINE % "on_error: fail")
    plan = app.plan(shop)
    assert plan.nodes["s"].type == "memory"
    where = plan.nodes["out"].where
    assert where is not None and (where.line, where.column) == (8, 3)
    assert where.text == "  out: {type: blackhole, from: s, on_error: fail}"


def test_errors_have_the_place_in_the_file(shop: Path) -> None:
    (error,) = errors_of(shop, PIPELINE % "frmat: 1")
    assert (error.code, str(error.where)) == ("unknown-option", f"{shop}:8:35")
    (error,) = errors_of(shop, PIPELINE.replace("schema: id INT", "schema: 5") % "mode: append")
    assert error.where is not None
    assert (error.where.line, error.where.column, error.where.text.strip()[:8]) == (
        6,
        1,
        "s: {type",
    )
    (error, *_) = errors_of(shop, PIPELINE % "x: [1")
    assert error.where is not None and error.where.line in (8, 9)


def test_scripts_have_preprocessors(shop: Path) -> None:
    script = shop.with_suffix(".sql")
    text = "SELECT gone FROM gone;\nSELECT 1 AS x, nope FROM t;\n"
    errors = errors_of(script, "-- preprocess: tools:drop {word: gone}\n" + text)
    assert {error.where.line for error in errors if error.where} == {3}


@pytest.mark.parametrize(
    ("directive", "code", "message"),
    [
        ("tools:fails", "failed-preprocessor", "ValueError: no ("),
        ("tools:nothing", "failed-preprocessor", "returned NoneType, expected text"),
        ("tools:drop {wrod: x}", "failed-preprocessor", "KeyError: 'word'"),
        ("tools:drop {word", "wrong-type", "expected options such as {key: value}"),
        ("tools:gone", "unknown-function", "has no function gone"),
        ("gone:drop", "missing-file", "cannot read"),
        ("unwrap", "unknown-type", 'there is no preprocessor "unwrap"'),
    ],
)
def test_errors_of_preprocessors(shop: Path, directive: str, code: str, message: str) -> None:
    (error,) = errors_of(shop, f"# preprocess: {directive}\n{PIPELINE % 'mode: append'}")
    assert error.code == code and message in error.message
    assert error.where is not None and (error.where.line, error.where.column) == (1, 15)


def test_only_the_first_comments_have_directives(shop: Path) -> None:
    shop.write_text("name: x\n# preprocess: tools:fails\n" + PIPELINE.partition("shop\n")[2] % "")
    with pytest.raises(UserError) as caught:
        app.plan(shop)
    assert "failed-preprocessor" not in {error.code for error in flatten_errors(caught.value)}


def test_unchanged_lines_keep_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "edit.py").write_text(
        "import random\n\ndef edit(text, options):\n"
        "    chance, lines = random.Random(options['seed']), text.split('\\n')\n"
        "    edited = [lines[0]]\n"
        "    for line in lines[1:]:\n"
        "        edited += chance.choice([[line], [line], [], ['new', line], [line + '!']])\n"
        "    return '\\n'.join(edited)\n"
    )
    for seed in range(20):
        chance = random.Random(seed)
        lines = [f"{number}: {chance.random()}" for number in range(1, 40)]
        text = "\n".join([f"# preprocess: edit:edit {{seed: {seed}}}", *lines])
        processed = preprocess(text, f"f{seed}", tmp_path)
        originals = original_lines(f"f{seed}", processed)
        assert originals is not None and original_lines("other", processed) is None
        found = [originals.original(n + 1) for n in range(len(processed.split("\n")))]
        numbers = [number for number, _, _ in found]
        assert all(a <= b for a, b in itertools.pairwise(numbers))
        for line, (number, original, is_same) in zip(processed.split("\n"), found, strict=True):
            assert original == text.split("\n")[number - 1]
            assert is_same == (line == original) or line == "new"
