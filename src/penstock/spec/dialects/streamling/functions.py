"""Functions of Streamling's SQL as functions in Python.

Those with the prefix `flink_` are of calls that `calls.py` translates. Integers of 256 bits are
texts of decimal digits. A result beyond the range, a null and a division by zero are errors of the
row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from penstock.spec.dialects.options.trees import Tree

_RANGES = {"u": ("0", "2**256 - 1"), "i": ("-2**255", "2**255 - 1")}
_OPERATORS = {"add": "+", "sub": "-", "mul": "*"}
_CHECKED = """\
if not {low} <= result <= {high}:
    raise ValueError("out of the range of {name}256: " + str(result))
return str(result)
"""
_DIVIDED = """\
first, second = int(a), int(b)
if second == 0:
    raise ValueError("division by zero")
quotient = abs(first) // abs(second)
quotient = quotient if (first < 0) == (second < 0) else -quotient
result = {result}
"""
_COMPARED = "return (int(a) > int(b)) - (int(a) < int(b))\n"
_TO_INT64 = """\
number = int(a)
if 0 <= number < 2**64:
    return number if number < 2**63 else number - 2**64
return number if -2**63 <= number < 0 else None
"""
_CONV_BASE = """\
digits = "0123456789abcdefghijklmnopqrstuvwxyz"
if text is None or not (2 <= source <= 36 and 2 <= target <= 36):
    return None
try:
    number = int(text, source)
except ValueError:
    return None
sign, number, found = "-" if number < 0 else "", abs(number), ""
while number:
    number, digit = divmod(number, target)
    found = digits[digit] + found
return sign + (found or "0")
"""
_FROM_BASE58 = """\
alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
text = text or ""
if any(char not in alphabet for char in text):
    return b""
number = 0
for char in text:
    number = number * 58 + alphabet.index(char)
zeros = len(text) - len(text.lstrip("1"))
return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")
"""
_HEX_TO_BYTE = """\
try:
    return bytes.fromhex((text or "").removeprefix("0x"))
except ValueError:
    return b""
"""
_UUID7 = """\
import os, time, uuid
number = int(time.time() * 1000) << 80 | int.from_bytes(os.urandom(10), "big")
number = number & ~(0xF << 76) | 7 << 76
return str(uuid.UUID(int=number & ~(3 << 62) | 2 << 62))
"""


def _function(args: Mapping[str, str], returns: str, body: str, **options: Tree) -> dict[str, Tree]:
    return {"args": args, "returns": returns, "code": body, **options}


def _library(call: str, args: Mapping[str, str], returns: str, **options: Tree) -> dict[str, Tree]:
    """Returns a function of `library/`, as `texts.split`."""
    module, _, name = call.partition(".")
    path = f"penstock.spec.dialects.streamling.library.{module}"
    body = f"from {path} import {name}\nreturn {name}({', '.join(args)})\n"
    return _function(args, returns, body, **options)


def _of_256_bits(kind: str) -> dict[str, dict[str, Tree]]:
    low, high = _RANGES[kind]
    checked = _CHECKED.format(low=low, high=high, name=kind)
    one, two = {"a": "STRING"}, {"a": "STRING", "b": "STRING"}
    found = {
        f"to_{kind}256": _function(one, "STRING", f"result = int(a)\n{checked}"),
        f"{kind}256_to_string": _function(one, "STRING", "return a\n", skip_nulls=True),
    }
    for name, operator in _OPERATORS.items():
        body = f"result = int(a) {operator} int(b)\n{checked}"
        found[f"{kind}256_{name}"] = _function(two, "STRING", body)
    for name, result in (("div", "quotient"), ("mod", "first - quotient * second")):
        body = _DIVIDED.format(result=result) + checked
        found[f"{kind}256_{name}"] = _function(two, "STRING", body)
    found[f"{kind}256_compare"] = _function(two, "INT", _COMPARED, skip_nulls=True)
    return found


_TEXT = {"text": "STRING"}
_AT_PATH = {**_TEXT, "path": "STRING"}
_SIGNED = _CHECKED.format(low=_RANGES["i"][0], high=_RANGES["i"][1], name="i")
FUNCTIONS: Mapping[str, Mapping[str, Tree]] = {
    **_of_256_bits("u"), **_of_256_bits("i"),
    "i256_neg": _function({"a": "STRING"}, "STRING", f"result = -int(a)\n{_SIGNED}"),
    "i256_abs": _function({"a": "STRING"}, "STRING", f"result = abs(int(a))\n{_SIGNED}"),
    "to_int64": _function({"a": "STRING"}, "BIGINT", _TO_INT64),
    "_gs_conv_base": _function(
        {"text": "STRING", "source": "INT", "target": "INT"}, "STRING", _CONV_BASE
    ),
    "_gs_from_base58": _function({"text": "STRING"}, "BINARY", _FROM_BASE58),
    "_gs_hex_to_byte": _function({"text": "STRING"}, "BINARY", _HEX_TO_BYTE),
    "_gs_byte_to_hex": _function({"data": "BINARY"}, "STRING", "return data.hex()\n",
                                 skip_nulls=True),
    "reverse_bytes32": _function({"data": "BINARY"}, "BINARY", "return data[::-1]\n",
                                 skip_nulls=True),
    "uuid7": _function({}, "STRING", _UUID7, deterministic=False),
    "_gs_xxhash": _library("hashes.xxhash", _TEXT, "STRING", dependencies=["xxhash"]),
    "_gs_keccak256": _library("hashes.keccak256", _TEXT, "STRING", dependencies=["pycryptodome"]),
    "split_index": _library(
        "texts.split_index", {**_TEXT, "delimiter": "STRING", "index": "INT"}, "STRING"
    ),
    "flink_split": _library("texts.split", {**_TEXT, "delimiter": "STRING"}, "ARRAY<STRING>"),
    "flink_instr": _library(
        "texts.instr", {**_TEXT, "part": "STRING", "start": "INT", "occurrence": "INT"}, "INT"
    ),
    "json_quote": _library("json_texts.quote", _TEXT, "STRING"),
    "json_unquote": _library("json_texts.unquote", _TEXT, "STRING"),
    "flink_json": _library("json_texts.compact", _TEXT, "STRING"),
    "flink_try_json": _library("json_texts.try_compact", _TEXT, "STRING"),
    "flink_is_json": _library("json_texts.is_json", {**_TEXT, "kind": "STRING"}, "BOOLEAN"),
    "flink_json_exists": _library(
        "json_texts.exists", {**_AT_PATH, "on_error": "STRING"}, "BOOLEAN"
    ),
    "flink_json_value": _library("json_texts.value", {
        **_AT_PATH, "on_empty": "STRING", "empty_default": "STRING", "on_error": "STRING",
        "error_default": "STRING",
    }, "STRING"),
    "flink_json_query": _library("json_texts.query", {
        **_AT_PATH, "wrapper": "STRING", "on_empty": "STRING", "on_error": "STRING",
    }, "STRING"),
    "flink_json_array": _library(
        "json_texts.array", {"items": "ARRAY<STRING>", "absent": "BOOLEAN"}, "STRING"
    ),
    "flink_json_object": _library("json_texts.object_", {
        "keys": "ARRAY<STRING>", "items": "ARRAY<STRING>", "absent": "BOOLEAN",
    }, "STRING"),
}  # fmt: skip
"""The functions that Penstock has."""
MISSING: Mapping[str, str] = {
    "_gs_json_objects_to_clickhouse_tuples": "write the text of the tuples with concat",
    **dict.fromkeys(
        ("json_arrayagg", "json_arrayagg_absent_on_null", "json_objectagg",
         "json_objectagg_absent_on_null"),
        "write to_json(array_agg(a))",
    ),
}  # fmt: skip
"""Functions that Penstock does not have, each with the expression to write."""
_CALL = re.compile(r"\b(\w+)\s*\(")


def called_functions(texts: Iterable[str]) -> dict[str, Tree] | None:
    """Returns the functions that queries call, by name; None without any."""
    names = {name.lower() for text in texts for name in _CALL.findall(text)}
    return {name: FUNCTIONS[name] for name in FUNCTIONS if name in names} or None
