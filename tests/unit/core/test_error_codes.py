"""The register of error codes and the code agree."""

from __future__ import annotations

import ast
import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pyspark
import pytest

import penstock
from penstock.core import error_codes
from penstock.core.error_codes import (
    ERROR_CODES,
    EXTERNAL_CODES,
    RECORD_CODES,
    SERVER_CODES,
    STATE_CODES,
    USER_CODES,
)

SRC = Path(penstock.__file__).parent
WRONG = Path(__file__).parents[2] / "golden" / "wrong"
CODE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
LITERAL = re.compile(r'"([a-z0-9-]+)"')
CONSTANT = re.compile(r'^([A-Z_]+) = "([a-z0-9-]+)"$', re.MULTILINE)
HAS_CODES = re.compile(r"\b(?:code=|default_code\b|code: str\b|def error_code\b)")
SENTENCE = re.compile(r"[A-Z](?:[^.\n]|\.(?! ))*[^.\s]\.")
BY_MESSAGE = {"no-row", "null-map-key"}
"""Codes that `parse_data_error` finds by the messages of `raise_error`."""
PARTS = (USER_CODES, EXTERNAL_CODES, RECORD_CODES, STATE_CODES, SERVER_CODES)

Constants = dict[str, list[ast.expr]]


@pytest.mark.slow
def test_codes_of_errors_are_registered() -> None:
    missing = {code: module for code, module in used_codes().items() if code not in ERROR_CODES}
    assert not missing, "add a meaning to penstock.core.error_codes"


@pytest.mark.slow
def test_registered_codes_are_in_use() -> None:
    unused = set(ERROR_CODES) - set(used_codes())
    literals = {text for source in sources().values() for text in LITERAL.findall(source)}
    assert unused == BY_MESSAGE, "remove the code from penstock.core.error_codes"
    assert literals >= BY_MESSAGE


def test_each_code_has_a_sentence() -> None:
    assert sum(map(len, PARTS)) == len(ERROR_CODES), "a code is registered twice"
    assert all(list(part) == sorted(part) for part in PARTS)
    for code, meaning in ERROR_CODES.items():
        assert CODE.fullmatch(code), code
        assert SENTENCE.fullmatch(meaning), f"{code}: {meaning}"


def test_codes_of_golden_files_are_registered() -> None:
    shown = {
        code
        for path in WRONG.glob("*.txt")
        for code in re.findall(r"\b(?:error|warning)\[([^\]]+)\]", path.read_text())
    }
    assert len(shown) > 50
    assert not shown - set(ERROR_CODES) - spark_conditions()


def test_collection_of_codes() -> None:
    tree = ast.parse(
        """
CODE = "from-constant"
_ERRORS = {"A": ("from-tuple", None), "B": ("other-tuple", "hint")}

class Wrong(Exception):
    default_code = "from-class"
    def __init__(self, message: str, code: str = "from-default") -> None: ...

def fail(x):
    code, hint = _ERRORS[x]
    Error("", code=code)
    Error("", code=CODE if x else "from-branch")
    Wrong("", "from-position")
"""
    )
    assert set(CodesOfModule(tree, {}, {})) == {
        "from-constant", "from-tuple", "other-tuple", "from-class", "from-default", "from-branch",
        "from-position",
    }  # fmt: skip


@cache
def sources() -> dict[Path, str]:
    """Returns the text of each module of Penstock, except the register."""
    register = Path(error_codes.__file__).parent
    paths = [path for path in sorted(SRC.rglob("*.py")) if path.parent != register]
    return {path: path.read_text() for path in paths}


class CodesOfModule:
    """The codes that a module passes to errors: literals, and names bound to literals."""

    def __init__(self, tree: ast.Module, constants: Constants, positions: dict[str, int]) -> None:
        self.nodes = list(ast.walk(tree))
        self.constants = constants
        self.positions = positions | positions_of_code(self.nodes)
        self.bound = bindings(self.nodes)

    def __iter__(self) -> Iterator[str]:
        for node in self.nodes:
            for value in self._values(node):
                yield from self._strings(value)

    def _values(self, node: ast.AST) -> Iterator[ast.expr]:
        """Yields the expressions of codes in a call, a definition or an assignment."""
        if isinstance(node, ast.Call):
            yield from (k.value for k in node.keywords if k.arg in ("code", "default_code"))
            position = self.positions.get(name_of(node.func))
            if position is not None and len(node.args) > position:
                yield node.args[position]
        elif isinstance(node, ast.FunctionDef):
            yield from defaults_of_code(node)
            if node.name == "error_code":
                found = [each for each in ast.walk(node) if isinstance(each, ast.Return)]
                yield from (each.value for each in found if each.value is not None)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and "default_code" in names(node):
            yield from [node.value] if node.value is not None else []

    def _strings(self, value: ast.expr, seen: frozenset[str] = frozenset()) -> Iterator[str]:
        """Yields the texts that an expression can have, as far as they are literals."""
        if isinstance(value, ast.Constant):
            yield from [value.value] if isinstance(value.value, str) and value.value else []
        elif isinstance(value, ast.Name) and value.id not in seen:
            found = self.bound.get(value.id) or self.constants.get(value.id, [])
            seen |= {value.id}
            yield from (text for each in found for text in self._strings(each, seen))
        else:
            yield from (text for part in results(value) for text in self._strings(part, seen))


def results(value: ast.expr) -> list[ast.expr]:
    """Returns the parts of an expression that can be its result; of a tuple the first."""
    match value:
        case ast.IfExp():
            return [value.body, value.orelse]
        case ast.BoolOp() | ast.Dict():
            return value.values
        case ast.Tuple():
            return value.elts[:1]
        case ast.Subscript():
            return [value.value]
        case ast.Call(func=ast.Attribute(attr="get")):
            return [value.func.value, *value.args[1:]]
    return []


def defaults_of_code(node: ast.FunctionDef) -> list[ast.expr]:
    """Returns the default of a parameter `code`, if it has one."""
    positional = [*node.args.posonlyargs, *node.args.args]
    last = positional[len(positional) - len(node.args.defaults) :]
    pairs = [
        *zip(last, node.args.defaults, strict=True),
        *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
    ]
    return [default for parameter, default in pairs if parameter.arg == "code" and default]


def bindings(nodes: Iterable[ast.AST]) -> Constants:
    """Returns the values that names are assigned; for `code, hint = x`, `code` has `x`."""
    bound: Constants = {}
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for name in names(node):
                bound.setdefault(name, []).append(node.value)
    return bound


def names(node: ast.Assign | ast.AnnAssign) -> list[str]:
    """Returns the names that an assignment binds, of a tuple the first."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    firsts = [t.elts[0] if isinstance(t, ast.Tuple) and t.elts else t for t in targets]
    return [target.id for target in firsts if isinstance(target, ast.Name)]


def name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def positions_of_code(nodes: Iterable[ast.AST]) -> dict[str, int]:
    """Returns the callables of a module with a parameter `code`, and its position."""
    return {name: position for node in nodes for name, position in code_parameters(node)}


def code_parameters(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yields the callable that a node defines and the position of its parameter `code: str`."""
    if isinstance(node, ast.FunctionDef):
        found = [a for a in node.args.args if a.arg not in ("self", "cls")]
        for position, argument in enumerate(found):
            if argument.arg == "code" and ast.unparse(argument.annotation or node) == "str":
                yield node.name, position
    elif isinstance(node, ast.ClassDef):
        fields = [s for s in node.body if isinstance(s, ast.AnnAssign)]
        for position, field in enumerate(fields):
            if names(field) == ["code"] and ast.unparse(field.annotation) == "str":
                yield node.name, position
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                yield from ((node.name, position) for _, position in code_parameters(method))


@cache
def used_codes() -> dict[str, str]:
    """Returns the codes that errors have, each with a module that uses it."""
    # Kept syntax trees would slow down each search for garbage.
    public = {
        name: position
        for text in sources().values()
        if HAS_CODES.search(text)
        for name, position in positions_of_code(ast.walk(ast.parse(text))).items()
        if not name.startswith("_")
    }
    calls = re.compile(rf"\b(?:{'|'.join(public)})\(")
    constants: Constants = {}
    for text in sources().values():
        for name, value in CONSTANT.findall(text):
            constants.setdefault(name, []).append(ast.Constant(value))
    return {
        code: str(path.relative_to(SRC))
        for path, text in sources().items()
        if HAS_CODES.search(text) or calls.search(text)
        for code in CodesOfModule(ast.parse(text), constants, public)
    }


def spark_conditions() -> set[str]:
    """Returns Spark's error conditions as codes."""
    [jar] = (Path(pyspark.__file__).parent / "jars").glob("spark-common-utils_*.jar")
    with zipfile.ZipFile(jar) as archive:
        conditions = json.loads(archive.read("error/error-conditions.json"))
    return {name.lower().replace("_", "-") for name in conditions}
