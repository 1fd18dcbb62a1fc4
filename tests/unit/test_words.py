"""The rules of CONTRIBUTING, section "Words", as far as a program can check them."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

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
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
PROPERTIES = {"property", "cached_property", "setter"}


@cache
def documented() -> list[tuple[str, ast.AST, str]]:
    """Returns the place, the node and the docstring of everything documented in the package."""
    return [
        (f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 1)}", node, text)
        for path in sorted(SOURCE.rglob("*.py"))
        for node in nodes(path)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (text := ast.get_docstring(node))
    ]


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Returns the nodes of the syntax tree of a file."""
    return [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]


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
        for place, node, text in documented()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not is_property(node)
        and not place.startswith("cli/")  # the help of a command is imperative
        and not re.match(r"[A-Z][a-z-]*s\b", text)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_docstrings_personify_nothing() -> None:
    wrong = [
        f"{place}: {match[0]}"
        for place, _, text in documented()
        for match in NOT_FIELD_TERMS.finditer(
            re.sub(r"`[^`]*`|```.*?```", "", text, flags=re.DOTALL)
        )
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_messages_and_hints_personify_nothing() -> None:
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in nodes(path):
            if not isinstance(node, ast.Call):
                continue
            texts = [*node.args, *(k.value for k in node.keywords if k.arg in ("hint", "message"))]
            is_error = ast.unparse(node.func).rpartition(".")[2][:1].isupper()
            for text in texts if is_error else ():
                for part in ast.walk(text):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        match = NOT_FIELD_TERMS.search(part.value)
                        if match and part.value != "us":
                            wrong.append(f"{path.relative_to(SOURCE)}:{part.lineno}: {part.value}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_tests_and_benchmarks_personify_nothing() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {match[0]}"
        for path in files("*.py")
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
        for path in files("test_*.py")
        for line, text in prose(path)
        if re.match(r"test (what|who|whom|whose|that|those) ", text)
    ]
    assert not wrong, "\n".join(wrong)


def files(pattern: str) -> Iterator[Path]:
    for name in CHECKED:
        yield from sorted((ROOT / name).rglob(pattern))


@cache
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
