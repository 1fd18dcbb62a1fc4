"""The rules of CONTRIBUTING, section "Words", as far as a program can check them."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import penstock

SOURCE = Path(penstock.__file__).parent
ROOT = Path(__file__).parents[2]
CHECKED = ("tests", "bench", "examples", "docs")
"""Directories beside the package that follow the rules."""
GENERATED = ROOT / "docs" / "reference"
NOT_FIELD_TERMS = re.compile(
    r"\b(told|tells?|wants?|wanted|refus(?:es?|ed|ing)|nobody|somebody|whom|us|we|our|"
    r"forgets?|forgot|patience|mistakes?)\b"
)
RELATIVE_SUBJECT = re.compile(r"test (what|who|whom|whose|that|those) ")
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
PROPERTIES = {"property", "cached_property", "setter"}


class Documented(NamedTuple):
    """A docstring of the package. `is_function` does not hold for properties."""

    place: str
    text: str
    is_function: bool


@cache
def texts_of_package() -> tuple[list[Documented], list[tuple[str, str]]]:
    """Returns the docstrings of the package, and the messages and hints with their places."""
    documented, messages = [], []
    for path in sorted(SOURCE.rglob("*.py")):
        file = str(path.relative_to(SOURCE))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                messages += [(f"{file}:{node.lineno}", text) for text in texts_of_error(node)]
            elif isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            ) and (text := ast.get_docstring(node)):
                is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                is_function = is_function and not is_property(node)
                place = f"{file}:{getattr(node, 'lineno', 1)}"
                documented.append(Documented(place, text, is_function))
    return documented, messages


def texts_of_error(call: ast.Call) -> Iterator[str]:
    """Yields the texts of a call of a class: of its arguments, its message and its hint."""
    called = call.func.value if isinstance(call.func, ast.Subscript) else call.func
    if not getattr(called, "attr", getattr(called, "id", ""))[:1].isupper():
        return
    named = (each.value for each in call.keywords if each.arg in ("hint", "message"))
    for argument in (*call.args, *named):
        for part in ast.walk(argument):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.value


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = {
        part.attr if isinstance(part, ast.Attribute) else getattr(part, "id", "")
        for part in node.decorator_list
    }
    return bool(names & PROPERTIES)


@pytest.mark.slow
def test_docstrings_of_functions_start_with_a_verb_in_the_third_person() -> None:
    wrong = [
        f"{place}: {text.splitlines()[0]}"
        for place, text, is_function in texts_of_package()[0]
        if is_function
        and not place.startswith("cli/")  # the help of a command is imperative
        and not re.match(r"[A-Z][a-z-]*s\b", text)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_docstrings_personify_nothing() -> None:
    wrong = [
        f"{place}: {match[0]}"
        for place, text, _ in texts_of_package()[0]
        for match in NOT_FIELD_TERMS.finditer(
            re.sub(r"`[^`]*`|```.*?```", "", text, flags=re.DOTALL)
        )
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_messages_and_hints_personify_nothing() -> None:
    wrong = [
        f"{place}: {text}"
        for place, text in texts_of_package()[1]
        if text != "us" and NOT_FIELD_TERMS.search(text)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_tests_and_benchmarks_personify_nothing() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {match[0]}"
        for path in files("*.py", NOT_FIELD_TERMS)
        for line, text in prose(path)
        for match in NOT_FIELD_TERMS.finditer(CODE.sub("", text))
        if text != "forget secrets"  # a function of the package
    ]
    assert not wrong, "\n".join(wrong)


def test_pages_personify_nothing() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in [*files("*.md"), *ROOT.glob("*.md")]
        if GENERATED not in path.parents and path.name != "CONTRIBUTING.md"
        for match in NOT_FIELD_TERMS.finditer(CODE.sub("", path.read_text(encoding="utf-8")))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_names_of_tests_have_no_relative_clause_as_subject() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in files("test_*.py", RELATIVE_SUBJECT)
        for line, text in prose(path)
        if RELATIVE_SUBJECT.match(text)
    ]
    assert not wrong, "\n".join(wrong)


def files(pattern: str, words: re.Pattern[str] = re.compile("")) -> Iterator[Path]:
    """Yields the files in whose text or names the words occur."""
    for name in CHECKED:
        for path in sorted((ROOT / name).rglob(pattern)):
            if words.search(path.read_text(encoding="utf-8").replace("_", " ")):
                yield path


def prose(path: Path) -> list[tuple[int, str]]:
    """Returns the comments, docstrings, names and messages of a file, with their lines."""
    return [*comments(path), *names_and_texts(path)]


def comments(path: Path) -> Iterator[tuple[int, str]]:
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def names_and_texts(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name.replace("_", " ").strip()
            case ast.ClassDef(name=name) | ast.arg(arg=name) | ast.Name(name, ast.Store()):
                yield node.lineno, name.replace("_", " ").strip()
            case ast.Expr(ast.Constant(text)) | ast.Assert(msg=ast.Constant(text)):
                yield node.lineno, str(text)
