"""Descriptions of expected and found values, and suggestions for wrong values."""

from __future__ import annotations

import re
from collections.abc import Sequence as List
from dataclasses import dataclass
from typing import Any

from penstock.core.permission_errors import NOT_PERMITTED
from penstock.core.secret import redact_urls
from penstock.core.text import nearest, shorten
from penstock.spec.findings import MAP_ERRORS
from penstock.spec.source_map import SourceValue, Substitution

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
}
_SMALL_BOUNDS = {
    ("string_too_short", 1): "text that is not empty",
    ("too_short", 1): "at least one entry",
    ("string_too_long", 1): "one character",
}
_FREE = {"value_error", "assertion_error"}
_SHORTEST_MASKED = 3


@dataclass(frozen=True)
class Phrase:
    """A description of the expected value.

    A `free` phrase is a whole sentence. A `foreign` phrase may contain values.
    """

    text: str
    code: str
    free: bool = False
    foreign: bool = False


def describe_expected(details: List[dict[str, Any]]) -> Phrase:
    """Returns the description of the values accepted by at least one of the branches."""
    phrases = [phrase for detail in details for phrase in _phrases(detail)]
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
    if details["type"] in {"literal_error", "enum", "union_tag_invalid"}:
        return [Phrase(choice, "invalid-value") for choice in allowed_values(details)]
    return [_phrase(details)]


def _phrase(details: dict[str, Any]) -> Phrase:
    kind, context = str(details["type"]), details.get("ctx") or {}
    if kind in _TYPES:
        return Phrase(_TYPES[kind], "invalid-value" if "parsing" in kind else "wrong-type")
    if kind in _BOUNDS:
        bound = context.get("min_length", context.get("max_length", 0))
        text = _SMALL_BOUNDS.get((kind, bound))
        return Phrase(text or _BOUNDS[kind].format(**context), "invalid-value")
    if kind == NOT_PERMITTED:
        return Phrase(context["text"], context["code"], free=True, foreign=True)
    message = str(context["error"]) if "error" in context else str(details["msg"])
    if kind not in _FREE:
        message = message.replace("Input should be", "expected")
    if message.startswith("expected "):
        code = "wrong-type" if kind.endswith("_type") else "invalid-value"
        return Phrase(message.removeprefix("expected "), code, foreign=True)
    return Phrase(message, "invalid-value", free=True, foreign=True)


def allowed_values(details: dict[str, Any]) -> list[str]:
    """Returns the values that a literal, an enum or the discriminator of a union allows."""
    context = details.get("ctx") or {}
    text = str(context.get("expected", context.get("expected_tags", "")))
    return [
        quoted or word
        for quoted, word in re.findall(r"'((?:[^'\\]|\\.)*)'|([^\s,']+)", text)
        if word != "or"
    ]


def _either(texts: list[str]) -> str:
    if len(texts) < 2:
        return "".join(texts)
    long = any(" or " in text for text in texts)
    return f"{', '.join(texts[:-1])}{',' if long else ''} or {texts[-1]}"


def describe_found(value: SourceValue | None) -> str:
    """Returns `found "abc"`: the value as in the file, before substitution, without a password."""
    if value is not None and value.is_map:
        return "found a map"
    if value is not None and value.is_list:
        return "found a list" if value.data else "found an empty list"
    if value is None or (value.is_empty and not value.quoted):
        return "found no value"
    if isinstance(value.data, str) or value.substitutions:
        return f'found "{shorten(redact_urls(value.written), 60)}"'
    return f"found {value.written}"


def suggest_fix(details: List[dict[str, Any]], value: SourceValue | None) -> str | None:
    """Returns a hint for a wrong value, or None."""
    kinds = {str(detail["type"]) for detail in details}
    if NOT_PERMITTED in kinds:
        return next(str(each["ctx"]["hint"]) for each in details if each["type"] == NOT_PERMITTED)
    if value is not None and value.is_list and kinds <= MAP_ERRORS:
        if value.inline:
            return None
        named = kinds == {"dict_type"}
        return (
            "write a name and a colon instead of each dash"
            if named
            else "remove the dash before each key"
        )
    if value is None or not value.is_scalar or value.substitutions:
        return None
    text = isinstance(value.data, str)
    allowed = [choice for detail in details for choice in allowed_values(detail)]
    if text and allowed and (nearest_choice := nearest(value.written, allowed)):
        return f'did you mean "{nearest_choice}"?'
    if kinds & {"string_type", "names_type"} and value.data is not None and not text:
        return f'put the value in quotes: "{value.written}"'
    if kinds == {"list_type"} and text and value.written:
        if value.written.startswith("["):
            return f"write the list without quotes: {value.written}"
        items = [item.strip() for item in value.written.split(",")]
        quotes = " without quotes" if value.quoted else ""
        return f"write a list{quotes}: [{', '.join(items)}]"
    return None


def mask_substitutions(message: str, value: SourceValue | None) -> str:
    """Returns the message with expressions such as `${NAME}` in place of their values."""
    for substitution in value.substitutions if value is not None else ():
        for text in _masked_texts(substitution):
            message = message.replace(text, substitution.expression)
    return message


def _masked_texts(substitution: Substitution) -> tuple[str, ...]:
    """Returns the value and its form in quotes; empty for a short value."""
    value = substitution.value
    shortest = 1 if substitution.secret else _SHORTEST_MASKED
    return (value, repr(value)[1:-1]) if len(value) >= shortest else ()
