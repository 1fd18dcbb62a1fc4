"""Variables and secrets in the values of a pipeline file.

| expression | value |
| --- | --- |
| `${NAME}` or `${env:NAME}` | the environment variable; an error if it is not set |
| `${NAME:-text}` | the environment variable, or `text` if it is not set or empty |
| `${NAME:?message}` | as above; if it is not set or empty, an error with the message |
| `${file:PATH}` | the text of a file, without line ends at its end, as a secret |
| `${secret:file/NAME}` | the text of the file `NAME` in the directory of secrets |
| `${secret:PROVIDER/NAME}` | the secret of an installed provider |
| `$${` | a literal `${` |

A name may contain dots. `text` may contain further expressions: `${HOST:-${HOSTNAME:-localhost}}`.
Expressions are replaced in values after the file was parsed. They are not replaced in keys, and a
value never changes the structure of the file. An expression that is a whole unquoted value may be a
number, `true` or `false`: `max_records: ${ROWS:-500}`. A secret is always text.

The directory of secrets is the environment variable `PENSTOCK_SECRETS`, by default `/run/secrets`.
The file may be in a subdirectory: `${secret:file/kafka/password}`. A line end at its end is not
part of the secret. Messages, logs, plans and reasons of dead letters contain asterisks in place of
a secret. A secret of fewer than four characters is not replaced within a longer text, and
`spark.log` does not replace one that `penstock sql` reads after the start of Spark.

A provider is a function from the name of a secret to its text. A package registers providers as
entry points of the group `penstock.secrets`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as Environment
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.core.errors import SpecError
from penstock.core.files.pipes import open_without_waiting
from penstock.core.known_secrets import remember_secret
from penstock.core.path_permission import CODE, rejection
from penstock.core.text import nearest
from penstock.spec.documents.secrets import SecretError, reveal
from penstock.spec.tree import scalars
from penstock.spec.tree.nodes import Entry, Interpolated, Node, ScalarNode, SequenceNode

_ENVIRONMENT = "env:"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")
_FORM = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_.]*)(?P<op>:-|:\?)(?P<argument>.*)\Z", re.DOTALL)
LITERAL = "write $${ for a literal ${"


class _ExpressionError(Exception):
    """An expression without a value."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


@dataclass
class _Result:
    text: str
    parts: list[Interpolated]
    secret: bool = False


class Interpolator:
    """An evaluator of expressions. Errors are in `errors`."""

    def __init__(self, env: Environment[str, str]) -> None:
        self.env = env
        self.errors: list[SpecError] = []
        self._results: dict[int, Node] = {}

    def node(self, node: Node) -> Node:
        """Returns the tree with all expressions replaced; the same tree if there are none."""
        known = self._results.get(id(node))
        if known is None:
            known = self._results[id(node)] = self._replace(node)
            self._results.setdefault(id(known), known)
        return known

    def _replace(self, node: Node) -> Node:
        if isinstance(node, ScalarNode):
            return self._scalar(node)
        if isinstance(node, SequenceNode):
            items = tuple(self.node(item) for item in node.items)
            return node if _are_identical(items, node.items) else replace(node, items=items)
        values = tuple(self.node(entry.value) for entry in node.entries)
        if _are_identical(values, tuple(entry.value for entry in node.entries)):
            return node
        pairs = zip(node.entries, values, strict=True)
        return replace(node, entries=tuple(Entry(entry.key, value) for entry, value in pairs))

    def _scalar(self, scalar: ScalarNode) -> ScalarNode:
        if (
            "${" not in scalar.written
            or not isinstance(scalar.value, str)
            or scalar.interpolated_parts
        ):
            return scalar
        count = len(self.errors)
        result = self._expand(scalar.written, scalar, 0)
        if len(self.errors) > count:
            return replace(scalar, invalid=True)
        if scalar.secret:
            remember_secret(result.text)
        return replace(
            scalar,
            value=_value(scalar, result),
            text=result.text,
            interpolated_parts=tuple(result.parts),
            secret=result.secret or scalar.secret,
        )

    def _expand(self, written: str, scalar: ScalarNode, origin: int) -> _Result:
        """Replaces the expressions of `written`, which starts at `origin` of the scalar."""
        result, position = _Result("", []), 0
        while (start := written.find("${", position)) >= 0:
            escaped = start > position and written[start - 1] == "$"
            result.text += written[position : start - escaped]
            text_start = len(result.text)
            if escaped:
                end = start + 2
                result.text += "${"
            else:
                end = _closing(written, start) or len(written)
                result.text += self._value(written[start:end], scalar, origin + start, result)
            first = origin + start - escaped
            result.parts.append(Interpolated(text_start, len(result.text), first, origin + end))
            position = end
        result.text += written[position:]
        return result

    def _value(self, expression: str, scalar: ScalarNode, origin: int, result: _Result) -> str:
        try:
            return self._evaluate(expression, scalar, origin, result)
        except _ExpressionError as error:
            location = scalar.locate_span(origin, origin + len(expression))
            self.errors.append(
                SpecError(error.message, code=error.code, where=location, hint=error.hint)
            )
            return expression

    def _evaluate(self, expression: str, scalar: ScalarNode, origin: int, result: _Result) -> str:
        if not expression.endswith("}"):
            raise _ExpressionError("invalid-variable", 'this "${" is not closed', LITERAL)
        inner = expression[2:-1]
        if inner.startswith("secret:"):
            result.secret = True
            return _secret(inner.removeprefix("secret:"), self.env)
        if inner.startswith("file:"):
            result.secret = True
            return _file_text(Path(scalar.base, inner.removeprefix("file:")))
        prefix = _ENVIRONMENT if inner.startswith(_ENVIRONMENT) else ""
        inner = inner.removeprefix(prefix)
        if _NAME.match(inner):
            if inner in self.env:
                return self.env[inner]
            raise _unset(inner, self.env)
        form = _FORM.match(inner)
        if form is None:
            raise _unknown(prefix + inner)
        if self.env.get(form["name"]):
            return self.env[form["name"]]
        if form["op"] == ":?":
            reason = form["argument"].strip() or "not set, or empty"
            raise _ExpressionError(
                "unset-variable", f'the environment variable "{form["name"]}" is required: {reason}'
            )
        default = self._expand(
            form["argument"], scalar, origin + 2 + len(prefix) + form.start("argument")
        )
        result.secret = result.secret or default.secret
        return default.text


def _are_identical(nodes: tuple[Node, ...], others: tuple[Node, ...]) -> bool:
    return all(node is other for node, other in zip(nodes, others, strict=True))


def _value(scalar: ScalarNode, result: _Result) -> str | int | float | bool | None:
    if not scalar.plain or result.secret or not result.text:
        return result.text
    single = len(result.parts) == 1 and result.parts[0].from_end == len(scalar.written)
    if not single or not scalar.written.startswith("${"):
        return result.text
    return scalars.resolve(result.text)


def _closing(text: str, start: int) -> int | None:
    """Returns the index after the `}` that closes the `${` at `start`, or None."""
    depth, position = 0, start
    while position < len(text):
        if text.startswith("${", position):
            depth, position = depth + 1, position + 2
        elif text[position] == "}":
            depth, position = depth - 1, position + 1
            if depth == 0:
                return position
        else:
            position += 1
    return None


def _secret(reference: str, env: Environment[str, str]) -> str:
    try:
        return reveal(reference, env)
    except SecretError as error:
        raise _ExpressionError("unknown-secret", error.message, error.hint) from None


def _file_text(path: Path) -> str:
    rejected = rejection(path)
    if rejected is not None:
        raise _ExpressionError(CODE, *rejected)
    try:
        with open_without_waiting(path) as file:
            text = file.read().decode("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        message = f"cannot read {path}: {reason}"
        raise _ExpressionError("unreadable-file", message) from None
    remember_secret(text)
    return text


def _unset(name: str, env: Environment[str, str]) -> _ExpressionError:
    prefixed = re.match(r"(env|ENV)\.(.+)", name)
    nearest_name = prefixed[2] if prefixed else nearest(name, env)
    hint = (
        f'did you mean "{nearest_name}"?'
        if nearest_name
        else f"set the variable, or write a default: ${{{name}:-...}}"
    )
    return _ExpressionError("unset-variable", f'the environment variable "{name}" is not set', hint)


def _unknown(inner: str) -> _ExpressionError:
    message = f'"${{{inner}}}" is not a valid variable'
    name = re.sub(r"\A(env|ENV)[:.]", "", inner.strip())
    if _NAME.match(name):
        return _ExpressionError("invalid-variable", message, f"write ${{{name}}}")
    if match := re.match(r"([A-Za-z_]\w*)(-|:|:=|\?|=|\+)(?![-?])(.*)\Z", name, re.DOTALL):
        return _ExpressionError(
            "invalid-variable", message, f"write a default as ${{{match[1]}:-{match[3]}}}"
        )
    return _ExpressionError("invalid-variable", message, LITERAL)
