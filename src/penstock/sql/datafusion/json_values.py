"""Templates of values in a JSON text, where `{0}` is the text.

Paths of Spark have no place for some keys, such as `it's`. The value of such a key, and of one that
is computed, is an element of the object as a map, or of the array.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock.sql.datafusion.json_keys import Computed, Step
from penstock.sql.datafusion.json_path import path_of
from penstock.sql.text.quoting import quote

_NOT_IN_PATHS = re.compile(r"['?*\"\\]|^\s|\s$|^$")
"""Keys that functions of Spark read in different ways in paths."""
_ELEMENT = (
    "get(transform(array(struct({value} AS value, {key} AS key)), step -> "
    "CASE WHEN typeof(step.key) = 'string' THEN element_at({map}, CAST(step.key AS STRING)) "
    "ELSE get({array}, try_cast(step.key AS INT)) END), 0)"
)
"""Names the value and the key once each: repeated, nested calls grow exponentially."""


def typed(steps: Sequence[Step], type_: str) -> str:
    """Returns the value as a type of Spark, or null if it cannot be one."""
    value, path = "try_parse_json({0})", list[str | int]()
    for step in steps:
        if not isinstance(step, Computed) and _is_in_paths(step):
            path.append(step)
            continue
        value, path = _element(value, path, step), []
    return _variant(value, path, type_)


def text(steps: Sequence[Step]) -> str:
    """Returns the text of any value."""
    path = [step for step in steps if not isinstance(step, Computed) and _is_in_paths(step)]
    if len(path) == len(steps):
        return f"get_json_object({{0}}, {_literal(path_of(path))})"
    return typed(steps, "string")


def json(steps: Sequence[Step]) -> str:
    """Returns the JSON text of any value."""
    return f"to_json({typed(steps, 'variant')})"


def number(steps: Sequence[Step], type_: str) -> str:
    """Returns a number, also from a text; null for other values."""
    return f"try_cast({text(steps)} AS {type_})"


def boolean(steps: Sequence[Step]) -> str:
    """Returns a boolean; null for other values."""
    return f"element_at(map('true', true, 'false', false), {json(steps)})"


def string(steps: Sequence[Step]) -> str:
    """Returns a text; null for other values."""
    value = typed(steps, "variant")
    texts = f"filter(array({value}), item -> schema_of_variant(item) = 'STRING')"
    return f"try_variant_get(get({texts}, 0), '$', 'string')"


def exists(steps: Sequence[Step]) -> str:
    """Returns whether there is a value, also null."""
    return f"({typed(steps, 'variant')} IS NOT NULL)"


def _is_in_paths(step: str | int) -> bool:
    return isinstance(step, int) or _NOT_IN_PATHS.search(step) is None


def _element(value: str, path: list[str | int], step: Step) -> str:
    """Returns the element of the value at a path."""
    if not isinstance(step, Computed):
        elements = _variant(value, path, "map<string,variant>")
        return f"element_at({elements}, {_literal(str(step))})"
    return _ELEMENT.format(
        value=value,
        key=f"{{{step.part}}}",
        map=_variant("step.value", path, "map<string,variant>"),
        array=_variant("step.value", path, "array<variant>"),
    )


def _variant(value: str, path: list[str | int], type_: str) -> str:
    return f"try_variant_get({value}, {_literal(path_of(path))}, '{type_}')"


def _literal(value: str) -> str:
    """Returns a text as a literal that has no place of a template."""
    return quote(value).replace("{", "\\u007B")
