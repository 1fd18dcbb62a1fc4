"""Functions of Streamling's SQL: their calls in Spark, and those in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.spec.dialects.streamling.calls import translate_calls
from penstock.spec.dialects.streamling.library import hashes, json_texts, texts
from penstock.sql.text.edits import Translation

DOCUMENT = '{"a": [1, {"b c": "x"}], "n": null}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("regexp_extract(a, 'x')",
         "CASE WHEN regexp_like(a, 'x') THEN regexp_extract(a, 'x', 0) END"),
        ("split(split(a, '.')[1], ',')", "flink_split(flink_split(a, '.')[1], ',')"),
        ("UPPERCASE(lowercase(a))", "upper(lower(a))"),
        ("elt(n, a, b)", "try_element_at(array(a, b), CASE WHEN n > 0 THEN CAST(n AS INT) END)"),
        ("array_filter(a, 'k', split(b, '.')[1])",
         "filter(a, _item -> _item.`k` = flink_split(b, '.')[1])"),
        ("json_value(j, '$.a', 'BIGINT')", "CAST(flink_json_value(j, '$.a', CAST(NULL AS STRING), "
         "CAST(NULL AS STRING), CAST(NULL AS STRING), CAST(NULL AS STRING)) AS BIGINT)"),
        ("instr(a, b), split_index(a, b, 1)", "instr(a, b), split_index(a, b, 1)"),
    ],
)  # fmt: skip
def test_calls(text: str, expected: str) -> None:
    assert translate_calls(Translation.of(text)).text == expected


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (texts.instr, ("banana", "an", 1, 2), 4), (texts.instr, ("banana", "an", -1, 1), 4),
        (texts.instr, ("banana", "an", -4, 1), 2), (texts.instr, ("banana", "x", 1, 1), 0),
        (texts.instr, ("banana", "an", 0, 1), 0), (texts.instr, (None, "an", 1, 1), None),
        (texts.instr, ("", "", 1, 1), 1),
        (texts.split, ("a.b", "."), ["a", "b"]), (texts.split, (None, "."), None),
        (texts.split_index, ("a", "", 0), "a"), (texts.split_index, ("a.b", ".", -1), None),
        (hashes.xxhash, (None,), None), (hashes.keccak256, (None,), None),
        (hashes.keccak256, ("abc",),
         "0x4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"),
        (hashes.keccak256, ("0x616263",),
         "0x4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"),
        (json_texts.value, (DOCUMENT, "$.a[1]['b c']", *[None] * 4), "x"),
        (json_texts.value, (DOCUMENT, "lax $.a[0]", *[None] * 4), "1"),
        (json_texts.value, (DOCUMENT, "$.n", "DEFAULT", "d", None, None), "d"),
        (json_texts.value, ("{", "$.n", None, None, "DEFAULT", "e"), "e"),
        (json_texts.value, (None, "$.n", *[None] * 4), None),
        (json_texts.query, (DOCUMENT, "$", None, None, None),
         '{"a":[1,{"b c":"x"}],"n":null}'),
        (json_texts.query, (DOCUMENT, "$.a", "WITH CONDITIONAL ARRAY WRAPPER", None, None),
         '[1,{"b c":"x"}]'),
        (json_texts.query, (DOCUMENT, "$.x", None, "EMPTY ARRAY", None), "[]"),
        (json_texts.query, ("{", "$.x", None, None, "EMPTY OBJECT"), "{}"),
        (json_texts.exists, (DOCUMENT, "$.n", None), True),
        (json_texts.exists, ("{", "$.n", "UNKNOWN"), None),
        (json_texts.exists, ("{", "$.n", "TRUE"), True),
        (json_texts.is_json, ("NaN", "VALUE"), False), (json_texts.is_json, ("1", "SCALAR"), True),
        (json_texts.compact, (" ",), None), (json_texts.try_compact, ("[1, 2]",), "[1,2]"),
        (json_texts.unquote, ('"a\\u00e9"',), "aé"), (json_texts.unquote, ("a",), "a"),
        (json_texts.quote, (None,), None),
        (json_texts.array, (['{"v":"{\\"x\\":1}"}', '{"v":null}'], False), '[{"x":1},null]'),
        (json_texts.object_, (["k", "l"], ['{"v":1.5}', '{"v":null}'], True), '{"k":1.5}'),
    ],
)  # fmt: skip
def test_functions(
    function: Callable[..., Any], arguments: tuple[Any, ...], expected: object
) -> None:
    assert function(*arguments) == expected


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (texts.instr, ("a", "a", 1, 0)), (json_texts.compact, ("{",)),
        (json_texts.value, (DOCUMENT, "a.b", *[None] * 4)),
        (json_texts.value, (DOCUMENT, "$..a", *[None] * 4)),
        (json_texts.value, (DOCUMENT, "$.x", "ERROR", None, None, None)),
        (json_texts.exists, ("{", "$.n", "ERROR")),
        (json_texts.object_, ([None], ['{"v":1}'], False)), (hashes.keccak256, ("0xzz",)),
    ],
)  # fmt: skip
def test_failing_functions(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError):
        function(*arguments)
