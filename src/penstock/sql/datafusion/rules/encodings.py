"""Encodings and hashes: `encode(a, 'hex')`, `sha256(a)`."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.text.calls import literal, rewrite_call
from penstock.sql.text.edits import DialectError, Edit
from penstock.sql.text.sql import Sql

_BY_ENCODING = {
    ("encode", "hex"): "lower(hex({0}))",
    ("encode", "base64"): "trim(TRAILING '=' FROM base64(CAST({0} AS BINARY)))",
    ("encode", "base64pad"): "base64(CAST({0} AS BINARY))",
    ("decode", "hex"): "unhex({0})",
    ("decode", "base64"): "unbase64({0})",
    ("decode", "base64pad"): "unbase64({0})",
    ("digest", "md5"): "unhex(md5({0}))",
    ("digest", "sha224"): "unhex(sha2({0}, 224))",
    ("digest", "sha256"): "unhex(sha2({0}, 256))",
    ("digest", "sha384"): "unhex(sha2({0}, 384))",
    ("digest", "sha512"): "unhex(sha2({0}, 512))",
}
_HASHES = {f"sha{bits}": f"unhex(sha2({{0}}, {bits}))" for bits in (224, 256, 384, 512)}


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields functions of Spark."""
    for call in sql.calls("encode", "decode", "digest"):
        if len(call.arguments) == 2:
            encoding = (literal(sql, call.arguments[1]) or "").lower()
            template = _BY_ENCODING.get((sql[call.name].value.lower(), encoding))
            if template:
                yield rewrite_call(sql, call, template)
            elif sql[call.name].value.lower() == "digest":
                first, last = call.arguments[1]
                raise DialectError(
                    f"the algorithm {sql.slice(first, last)} of digest has no counterpart in Spark",
                    sql[first].start, sql[last - 1].end,
                    "use 'md5', 'sha224', 'sha256', 'sha384' or 'sha512'", "unknown-function",
                )  # fmt: skip
    for call in sql.calls(*_HASHES, "to_hex"):
        if len(call.arguments) == 1:
            name = sql[call.name].value.lower()
            yield rewrite_call(sql, call, _HASHES.get(name, "lower(hex({0}))"))
