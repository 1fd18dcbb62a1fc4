"""Python code of functions: its syntax tree, its entry, and its compilation."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.core.errors import PlanError

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class CodeError(PlanError):
    """Invalid Python, at a line and column of the code, both from 1."""

    def __init__(
        self, message: str, line: int, column: int, *, code: str, hint: str | None = None
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.line, self.column = line, column


@dataclass(frozen=True)
class Code:
    """Python code. `entry` is its function or class, or None if the code is a function's body."""

    tree: ast.Module
    entry: Definition | None
    is_async: bool
    indent: int = 0


def parse(text: str) -> tuple[ast.Module, int]:
    """Returns the syntax tree of a text, and its common indentation. Raises CodeError."""
    text = text.replace("\r\n", "\n")
    dedented = textwrap.dedent(text)
    lines = zip(text.splitlines(), dedented.splitlines(), strict=False)
    indent = next((len(line) - len(short) for line, short in lines if short.strip()), 0)
    try:
        return ast.parse(dedented), indent
    except SyntaxError as error:
        line, column = error.lineno or 1, (error.offset or 1) + indent
        raise CodeError(
            f"the code is not valid Python: {error.msg}", line, column, code="invalid-python"
        ) from error
    except (ValueError, RecursionError) as error:
        raise CodeError(
            f"the code is not valid Python: {error}", 1, 1, code="invalid-python"
        ) from error


def read_code(text: str, name: str) -> Code:
    """Returns the code of a function: a definition of `name`, or a body. Raises CodeError."""
    tree, indent = parse(text)
    entry = find_definition(tree, name)
    if entry is not None:
        return Code(tree, entry, isinstance(entry, ast.AsyncFunctionDef), indent)
    own = list(_own_nodes(tree))
    if not any(isinstance(node, ast.Return | ast.Yield | ast.YieldFrom) for node in own):
        names = [node.name for node in tree.body if isinstance(node, Definition)]
        raise CodeError(
            f'the code neither defines "{name}" nor returns a value',
            1,
            1,
            code="unknown-function",
            hint=f"write def {name}(...), or the body of the function with return"
            + (f"; the code defines {', '.join(names)}" if names else ""),
        )
    awaits = (ast.Await, ast.AsyncFor, ast.AsyncWith)
    return Code(tree, None, any(isinstance(node, awaits) for node in own), indent)


def find_definition(tree: ast.Module, name: str) -> Definition | None:
    """Returns the function or class of a name at the top level of a module, or None."""
    found = [n for n in tree.body if isinstance(n, Definition) and n.name.lower() == name.lower()]
    return found[-1] if found else None


def as_module(tree: ast.Module, name: str, parameters: Sequence[str], is_async: bool) -> ast.Module:
    """Returns a module that defines a function whose body is `tree`."""
    arguments = ast.arguments(
        posonlyargs=[],
        args=[ast.arg(arg=parameter) for parameter in parameters],
        kwonlyargs=[],
        kw_defaults=[],
        defaults=[],
    )
    kind = ast.AsyncFunctionDef if is_async else ast.FunctionDef
    function = kind(
        name=name, args=arguments, body=tree.body, decorator_list=[], returns=None, type_params=[]
    )  # type: ignore[call-arg,unused-ignore]
    return ast.fix_missing_locations(ast.Module(body=[function], type_ignores=[]))


def _own_nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """Yields the nodes of a body without those of the functions and classes in it."""
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, _SCOPES):
            pending += ast.iter_child_nodes(node)
