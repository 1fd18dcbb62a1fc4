"""`${NAME}`, `${NAME:-default}`, `${NAME:?why}` and `${secret:file/NAME}` in values.

It happens after the YAML is parsed, so a value from outside never changes the shape of the file.
`$${` is a literal `${`. A value that is one unquoted expression and nothing else is a number,
true or false when it looks like one; a secret is always text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as Environment
from dataclasses import dataclass, replace

from penstock.core.errors import SpecError
from penstock.core.text import nearest
from penstock.spec import yaml12
from penstock.spec.nodes import Entry, Node, Piece, Scalar, Sequence
from penstock.spec.secrets import SecretError, reveal

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_FORM = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<op>:-|:\?)(?P<rest>.*)\Z", re.DOTALL)
LITERAL = "write $${ for a literal ${"


class _Wrong(Exception):
    """Why one expression has no value."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


@dataclass
class _Result:
    text: str
    pieces: list[Piece]
    secret: bool = False


class Interpolation:
    """Replaces expressions; what could not be replaced is in `mistakes`."""

    def __init__(self, env: Environment[str, str]) -> None:
        self.env = env
        self.mistakes: list[SpecError] = []
        self._done: dict[int, Node] = {}

    def node(self, node: Node) -> Node:
        """The tree with all expressions replaced; the same tree where there are none."""
        known = self._done.get(id(node))
        if known is None:
            known = self._done[id(node)] = self._replaced(node)
            self._done.setdefault(id(known), known)
        return known

    def _replaced(self, node: Node) -> Node:
        if isinstance(node, Scalar):
            return self._scalar(node)
        if isinstance(node, Sequence):
            items = tuple(self.node(item) for item in node.items)
            return node if _same(items, node.items) else replace(node, items=items)
        values = tuple(self.node(entry.value) for entry in node.entries)
        if _same(values, tuple(entry.value for entry in node.entries)):
            return node
        pairs = zip(node.entries, values, strict=True)
        return replace(node, entries=tuple(Entry(entry.key, value) for entry, value in pairs))

    def _scalar(self, scalar: Scalar) -> Scalar:
        if "${" not in scalar.written or not isinstance(scalar.value, str) or scalar.pieces:
            return scalar
        count = len(self.mistakes)
        result = self._expand(scalar.written, scalar, 0)
        if len(self.mistakes) > count:
            return replace(scalar, broken=True)
        return replace(
            scalar,
            value=_value(scalar, result),
            text=result.text,
            pieces=tuple(result.pieces),
            secret=result.secret,
        )

    def _expand(self, written: str, scalar: Scalar, origin: int) -> _Result:
        """`written` with its expressions replaced; it begins at `origin` of the scalar."""
        result, here = _Result("", []), 0
        while (start := written.find("${", here)) >= 0:
            escaped = start > here and written[start - 1] == "$"
            result.text += written[here : start - escaped]
            begin = len(result.text)
            if escaped:
                end = start + 2
                result.text += "${"
            else:
                end = _closing(written, start) or len(written)
                result.text += self._value(written[start:end], scalar, origin + start, result)
            first = origin + start - escaped
            result.pieces.append(Piece(begin, len(result.text), first, origin + end))
            here = end
        result.text += written[here:]
        return result

    def _value(self, expression: str, scalar: Scalar, origin: int, result: _Result) -> str:
        try:
            return self._evaluate(expression, scalar, origin, result)
        except _Wrong as wrong:
            place = scalar.part(origin, origin + len(expression))
            self.mistakes.append(
                SpecError(wrong.message, code=wrong.code, where=place, hint=wrong.hint)
            )
            return expression

    def _evaluate(self, expression: str, scalar: Scalar, origin: int, result: _Result) -> str:
        if not expression.endswith("}"):
            raise _Wrong("invalid-variable", 'this "${" is never closed', LITERAL)
        inner = expression[2:-1]
        if inner.startswith("secret:"):
            result.secret = True
            return _secret(inner.removeprefix("secret:"), self.env)
        if _NAME.match(inner):
            if inner in self.env:
                return self.env[inner]
            raise _unset(inner, self.env)
        form = _FORM.match(inner)
        if form is None:
            raise _unknown(inner)
        if self.env.get(form["name"]):
            return self.env[form["name"]]
        if form["op"] == ":?":
            why = form["rest"].strip() or "it is not set, or empty"
            raise _Wrong(
                "unset-variable", f'the environment variable "{form["name"]}" is needed: {why}'
            )
        default = self._expand(form["rest"], scalar, origin + 2 + form.start("rest"))
        result.secret = result.secret or default.secret
        return default.text


def _same(ours: tuple[Node, ...], theirs: tuple[Node, ...]) -> bool:
    return all(a is b for a, b in zip(ours, theirs, strict=True))


def _value(scalar: Scalar, result: _Result) -> str | int | float | bool | None:
    if not scalar.plain or result.secret or not result.text:
        return result.text
    whole = len(result.pieces) == 1 and result.pieces[0].from_end == len(scalar.written)
    if not whole or not scalar.written.startswith("${"):
        return result.text
    return yaml12.resolve(result.text)


def _closing(text: str, start: int) -> int | None:
    """The index behind the `}` that closes the `${` at `start`."""
    depth, here = 0, start
    while here < len(text):
        if text.startswith("${", here):
            depth, here = depth + 1, here + 2
        elif text[here] == "}":
            depth, here = depth - 1, here + 1
            if depth == 0:
                return here
        else:
            here += 1
    return None


def _secret(reference: str, env: Environment[str, str]) -> str:
    try:
        return reveal(reference, env)
    except SecretError as error:
        raise _Wrong("unknown-secret", error.message, error.hint) from None


def _unset(name: str, env: Environment[str, str]) -> _Wrong:
    near = nearest(name, env)
    hint = f'did you mean "{near}"?' if near else f"set it, or give a default: ${{{name}:-...}}"
    return _Wrong("unset-variable", f'the environment variable "{name}" is not set', hint)


def _unknown(inner: str) -> _Wrong:
    message = f'"${{{inner}}}" is not the name of a variable'
    name = re.sub(r"\A(env|ENV)[:.]", "", inner.strip())
    if _NAME.match(name):
        return _Wrong("invalid-variable", message, f"write ${{{name}}}")
    if found := re.match(r"([A-Za-z_]\w*)(-|:|:=|\?|=|\+)(?![-?])(.*)\Z", name, re.DOTALL):
        rest = found[3]
        return _Wrong("invalid-variable", message, f"a default is written ${{{found[1]}:-{rest}}}")
    return _Wrong("invalid-variable", message, LITERAL)
