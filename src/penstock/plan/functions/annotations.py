"""Types of Python annotations as Arrow types."""

from __future__ import annotations

import ast
from contextlib import suppress

import pyarrow as pa

from penstock.core.errors import PlanError, ValidationErrors, flatten_errors
from penstock.core.text import did_you_mean
from penstock.sdk.columns.ddl import arrow_schema

_TYPES = {
    "bool": pa.bool_(),
    "int": pa.int64(),
    "float": pa.float64(),
    "str": pa.string(),
    "bytes": pa.binary(),
    "Decimal": pa.decimal128(38, 18),
    "date": pa.date32(),
    "datetime": pa.timestamp("us", tz="UTC"),
}
_LISTS = {"list", "List", "Sequence", "Iterable"}
_MAPS = {"dict", "Dict", "Mapping"}
_HINT = f"write one of {', '.join(_TYPES)}, list[...], dict[...], or a SQL type in quotes"


def annotated_type(annotation: ast.expr) -> tuple[pa.DataType, bool]:
    """Returns the type of an annotation, and whether it accepts None.

    A text is a type of SQL, as in `"DECIMAL(10, 2)"`. Raises PlanError.
    """
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        sides = [annotation.left, annotation.right]
        others = [side for side in sides if not _is_none(side)]
        if len(others) == 1:
            return annotated_type(others[0])[0], True
    if isinstance(annotation, ast.Subscript) and _name(annotation.value) == "Optional":
        return annotated_type(annotation.slice)[0], True
    if isinstance(annotation, ast.Subscript) and _name(annotation.value) in _LISTS:
        return pa.list_(annotated_type(annotation.slice)[0]), False
    if isinstance(annotation, ast.Subscript) and _name(annotation.value) in _MAPS:
        parts = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else []
        if len(parts) == 2:
            return pa.map_(annotated_type(parts[0])[0], annotated_type(parts[1])[0]), False
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return _text_type(annotation.value)
    known = _TYPES.get(_name(annotation))
    if known is not None:
        return known, False
    raise _unknown(ast.unparse(annotation))


def element_type(annotation: ast.expr) -> tuple[pa.DataType, bool]:
    """Returns the type of the elements of a list, a parameter of an aggregate. Raises PlanError.

    An annotation other than a list is the type of the elements itself.
    """
    if isinstance(annotation, ast.Constant) and str(annotation.value).endswith("]"):
        with suppress(SyntaxError):
            annotation = ast.parse(str(annotation.value), mode="eval").body
    if isinstance(annotation, ast.Subscript) and _name(annotation.value) in _LISTS:
        return annotated_type(annotation.slice)[0], True
    return annotated_type(annotation)[0], True


def sql_type(text: str) -> pa.DataType:
    """Returns the Arrow type of a type of SQL. Raises PlanError, at the first error."""
    try:
        return arrow_schema({"value": text}).field(0).type
    except (PlanError, ValidationErrors) as error:
        first = flatten_errors(error)[0]
        raise PlanError(first.message, code="unknown-type", hint=first.hint) from None


def _text_type(text: str) -> tuple[pa.DataType, bool]:
    """Returns the type of a text: a type of SQL, or a postponed annotation."""
    try:
        return sql_type(text), True
    except PlanError as error:
        try:
            inner = ast.parse(text, mode="eval").body
        except SyntaxError:
            raise error from None
        if isinstance(inner, ast.Name) and inner.id not in _TYPES:
            raise
        return annotated_type(inner)


def _unknown(text: str) -> PlanError:
    return PlanError(
        f"{text} is not a type of SQL",
        code="unknown-type",
        hint=did_you_mean(text, _TYPES) if text.isidentifier() else _HINT,
    )


def _name(expression: ast.expr) -> str:
    """Returns the last part of a dotted name; empty for other expressions."""
    if isinstance(expression, ast.Attribute):
        return expression.attr
    return expression.id if isinstance(expression, ast.Name) else ""


def _is_none(expression: ast.expr) -> bool:
    return isinstance(expression, ast.Constant) and expression.value is None
