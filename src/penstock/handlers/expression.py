"""Expressions over the columns of a batch, without implicit casts.

The syntax is that of SQL: columns (also with dots, as `idle.mean`), literals, `+ - * / %`,
comparisons, AND, OR, NOT, IS NULL, IN, BETWEEN, LIKE, CASE and CAST. The comparisons and operators
also have the names of Gandiva, as `less_than(a, b)`. Both operands have one type; a literal takes
the type of the other operand. `/` of integers is the quotient without its fraction. The result is
null if an operand is, but AND, OR and CASE follow SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError

from penstock.core.text import did_you_mean
from penstock.handlers.errors import HandlerError
from penstock.handlers.rows import column

Values = Any
"""An array, or a scalar for all rows."""

_COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "equal", exp.NEQ: "not_equal", exp.LT: "less", exp.LTE: "less_equal",
    exp.GT: "greater", exp.GTE: "greater_equal",
}  # fmt: skip
_ARITHMETIC: dict[type[exp.Expression], str] = {
    exp.Add: "add_checked", exp.Sub: "subtract_checked", exp.Mul: "multiply_checked",
    exp.Div: "divide",
}  # fmt: skip
_NAMES: dict[str, type[exp.Expression]] = {
    "equal": exp.EQ, "not_equal": exp.NEQ, "less_than": exp.LT, "less_than_or_equal_to": exp.LTE,
    "greater_than": exp.GT, "greater_than_or_equal_to": exp.GTE, "add": exp.Add,
    "subtract": exp.Sub, "multiply": exp.Mul, "divide": exp.Div, "mod": exp.Mod, "like": exp.Like,
}  # fmt: skip


class Expression:
    """A parsed expression. Raises HandlerError if its syntax is invalid or unsupported."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tree = _parse(text)

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        """Returns the value for each row. Raises HandlerError."""
        try:
            values = _Evaluation(batch).value(self._tree)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            reason = str(error).splitlines()[0]
            raise HandlerError.invalid(f"Cannot evaluate {self.text}: {reason}") from None
        if isinstance(values, pa.Array):
            return values
        return pa.repeat(values, batch.num_rows)


@cache
def _parse(text: str) -> exp.Expression:
    """Returns the tree of an expression. Raises HandlerError."""
    try:
        parsed = sqlglot.parse_one(text)
    except SqlglotError as error:
        reason = str(error).splitlines()[0].removesuffix(".")
        raise HandlerError.invalid(f"Invalid expression {text}: {reason}") from None
    return parsed.transform(_by_name)


def _by_name(node: exp.Expression) -> exp.Expression:
    """Returns the operator that a call of a function with its name stands for."""
    if isinstance(node, exp.Anonymous) and node.name.lower() in _NAMES:
        operator = _NAMES[node.name.lower()]
        if len(node.expressions) == 2:
            return operator(this=node.expressions[0], expression=node.expressions[1])
    return node


class _Evaluation:
    """The evaluation of a tree over one batch."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    def value(self, node: Any) -> Values:
        """Returns the values of a node."""
        for kinds, evaluate in self._methods():
            if isinstance(node, kinds):
                return evaluate(node)
        text = node.sql() if isinstance(node, exp.Expression) else str(node)
        raise HandlerError.unsupported(f"Unsupported expression {text}")

    def _methods(self) -> Sequence[tuple[Any, Callable[[Any], Values]]]:
        return (
            (exp.Paren, lambda node: self.value(node.this)),
            (exp.Column, self._column),
            ((exp.Literal, exp.Boolean, exp.Null), _literal),
            (exp.Neg, lambda node: pc.negate_checked(self.value(node.this))),
            (tuple(_COMPARISONS), lambda node: self._binary(node, _COMPARISONS[type(node)])),
            (tuple(_ARITHMETIC), lambda node: self._binary(node, _ARITHMETIC[type(node)])),
            (exp.Mod, self._remainder),
            (exp.And, lambda node: self._logical(node, pc.and_kleene)),
            (exp.Or, lambda node: self._logical(node, pc.or_kleene)),
            (exp.Not, lambda node: pc.invert(self._condition(node.this))),
            (exp.Is, self._is_null),
            (exp.Between, self._between),
            (exp.In, self._in),
            (exp.Like, self._like),
            (exp.Case, self._case),
            (exp.Cast, self._cast),
        )

    def _column(self, node: exp.Column) -> Values:
        name = ".".join(part.name for part in node.parts)
        values = column(self._batch, name)
        if values is None:
            hint = did_you_mean(name, self._batch.schema.names)
            message = f"No such column: {name}"
            raise HandlerError.missing(f"{message}, {hint}" if hint else message)
        return values

    def _operands(self, *nodes: exp.Expression) -> list[Values]:
        """Returns operands of one type. A literal takes the type of the others."""
        values = [self.value(node) for node in nodes]
        fixed = {v.type for v, n in zip(values, nodes, strict=True) if not _is_literal(n)}
        if not fixed:
            fixed = {pa.float64()} if any(pa.types.is_floating(v.type) for v in values) else set()
        if len(fixed) > 1:
            types = ", ".join(str(value.type) for value in values)
            text = (nodes[0].parent or nodes[0]).sql()
            raise HandlerError.type(f"The operands of {text} have different types: {types}")
        return [_adapted(value, kind) for value in values for kind in fixed] if fixed else values

    def _binary(self, node: exp.Binary, function: str) -> Values:
        return pc.call_function(function, self._operands(node.this, node.expression))

    def _remainder(self, node: exp.Mod) -> Values:
        left, right = self._operands(node.this, node.expression)
        quotient = pc.divide(left, right)
        if pa.types.is_floating(quotient.type):
            quotient = pc.trunc(quotient)
        return pc.subtract(left, pc.multiply(quotient, right))

    def _condition(self, node: exp.Expression) -> Values:
        values = self.value(node)
        if pa.types.is_null(values.type):
            return values.cast(pa.bool_())
        if not pa.types.is_boolean(values.type):
            raise HandlerError.type(f"{node.sql()} has type {values.type}, and not bool")
        return values

    def _logical(self, node: exp.Binary, combine: Callable[[Values, Values], Values]) -> Values:
        return combine(self._condition(node.this), self._condition(node.expression))

    def _is_null(self, node: exp.Is) -> Values:
        if not isinstance(node.expression, exp.Null):
            raise HandlerError.unsupported(f"Unsupported expression {node.sql()}")
        return pc.is_null(self.value(node.this))

    def _like(self, node: exp.Like) -> Values:
        pattern = node.expression
        if not (isinstance(pattern, exp.Literal) and pattern.is_string):
            raise HandlerError.unsupported(f"Unsupported expression {node.sql()}")
        return pc.match_like(self.value(node.this), pattern.this)

    def _between(self, node: exp.Between) -> Values:
        value, low, high = self._operands(node.this, node.args["low"], node.args["high"])
        return pc.and_kleene(pc.greater_equal(value, low), pc.less_equal(value, high))

    def _in(self, node: exp.In) -> Values:
        if not node.expressions:
            raise HandlerError.unsupported(f"Unsupported expression {node.sql()}")
        value, *members = self._operands(node.this, *node.expressions)
        found = pc.equal(value, members[0])
        for member in members[1:]:
            found = pc.or_kleene(found, pc.equal(value, member))
        return found

    def _case(self, node: exp.Case) -> Values:
        branches = node.args["ifs"]
        values = self._operands(
            *(each.args["true"] for each in branches), node.args.get("default") or exp.Null()
        )
        result = values[-1]
        for branch, value in zip(reversed(branches), reversed(values[:-1]), strict=True):
            condition = self._condition(branch.this)
            result = pc.if_else(pc.fill_null(condition, False), value, result)
        return result

    def _cast(self, node: exp.Cast) -> Values:
        name = node.to.sql().lower()
        kinds = {"bigint": "int64", "int": "int32", "text": "string", "varchar": "string"}
        try:
            kind = pa.type_for_alias(kinds.get(name, name))
        except ValueError:
            raise HandlerError.unsupported(f"Unsupported type {name}") from None
        return self.value(node.this).cast(kind)


def _is_literal(node: exp.Expression) -> bool:
    inner = node.this if isinstance(node, exp.Neg | exp.Paren) else node
    return isinstance(inner, exp.Literal | exp.Boolean | exp.Null)


def _literal(node: exp.Expression) -> pa.Scalar:
    if isinstance(node, exp.Null):
        return pa.scalar(None)
    if isinstance(node, exp.Boolean):
        return pa.scalar(bool(node.this))
    if node.is_string:
        return pa.scalar(node.this, pa.string())
    return pa.scalar(int(node.this) if node.is_int else float(node.this))


def _adapted(value: Values, kind: pa.DataType) -> Values:
    """Returns the value of a literal in the type of the other operand. Raises HandlerError."""
    if value.type == kind:
        return value
    is_text = pa.types.is_string(value.type) != pa.types.is_string(kind)
    is_truth = pa.types.is_boolean(value.type) != pa.types.is_boolean(kind)
    is_text_time = pa.types.is_string(value.type) and pa.types.is_temporal(kind)
    if (is_text or is_truth) and not is_text_time and not pa.types.is_null(value.type):
        raise HandlerError.type(f"Expected a literal of type {kind}, found {value}")
    return value.cast(kind)
