"""What a value should have been, what it is, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Sequence as List
from dataclasses import dataclass
from typing import Any

from penstock.core.text import nearest, shorten
from penstock.spec.nodes import Mapping, Node, Scalar, Sequence, scalars

_TYPES = {
    "string_type": "text",
    "string_sub_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "decimal_type": "a number",
    "decimal_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a map",
    "mapping_type": "a map",
    "model_type": "a map",
    "model_attributes_type": "a map",
    "bytes_type": "text",
    "none_required": "nothing",
    "date_type": "a date",
    "date_parsing": "a date such as 2024-05-01",
    "date_from_datetime_parsing": "a date such as 2024-05-01",
    "datetime_type": "a time",
    "datetime_parsing": "a time such as 2024-05-01T12:00:00Z",
    "datetime_from_date_parsing": "a time such as 2024-05-01T12:00:00Z",
    "time_parsing": "a time of day such as 12:30:00",
    "url_type": "a URL",
    "url_parsing": "a URL",
    "uuid_parsing": "a UUID",
}
_BOUNDS = {
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "multiple_of": "a multiple of {multiple_of}",
    "string_too_short": "text of at least {min_length} characters",
    "string_too_long": "text of at most {max_length} characters",
    "string_pattern_mismatch": "text like {pattern}",
    "too_short": "at least {min_length} entries",
    "too_long": "at most {max_length} entries",
    "url_scheme": "a URL that begins with {expected_schemes}",
    "union_tag_invalid": "{expected_tags}",
}
_SMALL_BOUNDS = {
    ("string_too_short", 1): "text that is not empty",
    ("too_short", 1): "at least one entry",
    ("string_too_long", 1): "one character",
}
_MAPS = {"dict_type", "model_type", "model_attributes_type"}
_NO_DASH = "keys have no dash before them"
_FREE = {"value_error", "assertion_error"}
_SHORTEST_MASKED = 3


@dataclass(frozen=True)
class Phrase:
    """What was expected. A free one is a sentence of its own; a foreign one may echo values."""

    text: str
    code: str
    free: bool = False
    foreign: bool = False


def expected(details: List[dict[str, Any]]) -> Phrase:
    """What one of several branches would have taken."""
    phrases = [phrase for each in details for phrase in _phrases(each)]
    free = next((phrase for phrase in phrases if phrase.free), None)
    if free:
        return free
    phrases.sort(key=lambda phrase: phrase.foreign)
    texts = list(dict.fromkeys(phrase.text for phrase in phrases))
    if "a number" in texts and "a whole number" in texts:
        texts.remove("a whole number")
    values = any(phrase.code == "invalid-value" for phrase in phrases)
    foreign = any(phrase.foreign for phrase in phrases)
    return Phrase(_either(texts), "invalid-value" if values else "wrong-type", foreign=foreign)


def _phrases(details: dict[str, Any]) -> list[Phrase]:
    if details["type"] in {"literal_error", "enum"}:
        return [Phrase(choice, "invalid-value") for choice in choices(details)]
    return [_phrase(details)]


def _phrase(details: dict[str, Any]) -> Phrase:
    kind, context = str(details["type"]), details.get("ctx") or {}
    if kind in _TYPES:
        return Phrase(_TYPES[kind], "invalid-value" if "parsing" in kind else "wrong-type")
    if kind in _BOUNDS:
        empty = _SMALL_BOUNDS.get((kind, context.get("min_length", context.get("max_length", 0))))
        return Phrase(empty or _BOUNDS[kind].format(**context), "invalid-value")
    message = str(context["error"]) if "error" in context else str(details["msg"])
    if kind not in _FREE:
        message = message.replace("Input should be", "expected")
    if message.startswith("expected "):
        code = "wrong-type" if kind.endswith("_type") else "invalid-value"
        return Phrase(message.removeprefix("expected "), code, foreign=True)
    return Phrase(message, "invalid-value", free=True, foreign=True)


def choices(details: dict[str, Any]) -> list[str]:
    """The values that a literal or an enum allows."""
    text = str((details.get("ctx") or {}).get("expected", ""))
    return [a or b for a, b in re.findall(r"'((?:[^'\\]|\\.)*)'|([^\s,']+)", text) if b != "or"]


def _either(texts: list[str]) -> str:
    if len(texts) < 2:
        return "".join(texts)
    long = any(" or " in text for text in texts)
    return f"{', '.join(texts[:-1])}{',' if long else ''} or {texts[-1]}"


def shown(node: Node | None) -> str:
    """`not "abc"`: the value as the file has it, so what `${...}` stands for is not shown."""
    if isinstance(node, Mapping):
        return "not a map"
    if isinstance(node, Sequence):
        return "not a list" if node.items else "not an empty list"
    if node is None or (node.plain and not node.written):
        return "and there is no value"
    if isinstance(node.value, str) or node.interpolated:
        return f'not "{shorten(node.written, 60)}"'
    return f"not {node.written}"


def hint_for(details: List[dict[str, Any]], node: Node | None) -> str | None:
    """What to write instead, where that can be told."""
    kinds = {str(each["type"]) for each in details}
    if isinstance(node, Sequence) and kinds <= _MAPS:
        if node.flow:
            return None
        named = kinds == {"dict_type"}
        return "each has a name and a colon, in place of the dash" if named else _NO_DASH
    if not isinstance(node, Scalar) or node.interpolated:
        return None
    text = isinstance(node.value, str)
    allowed = [choice for each in details for choice in choices(each)]
    if text and allowed and (near := nearest(node.written, allowed)):
        return f'did you mean "{near}"?'
    if kinds & {"string_type", "names_type"} and node.value is not None and not text:
        return f'quote it: "{node.written}"'
    if kinds == {"list_type"} and text and node.written:
        items = [each.strip() for each in node.written.split(",")]
        return f"write a list: [{', '.join(items)}]"
    return None


def masked(message: str, node: Node | None) -> str:
    """The message with what came from outside shown as it was written."""
    if node is None:
        return message
    for scalar in scalars(node):
        for value, written in _foreign(scalar):
            message = message.replace(value, written)
    return message


def _foreign(scalar: Scalar) -> list[tuple[str, str]]:
    pairs = [(scalar.text, scalar.written)] if scalar.pieces else []
    for piece in scalar.pieces:
        written = scalar.written[piece.from_start : piece.from_end]
        pairs.append((scalar.text[piece.start : piece.end], written))
    least = 1 if scalar.secret else _SHORTEST_MASKED
    plain = [(value, written) for value, written in pairs if len(value) >= least]
    return plain + [(repr(value)[1:-1], written) for value, written in plain]
