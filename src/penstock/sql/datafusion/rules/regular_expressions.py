"""Regular expressions: `a ~ 'x'`, `a !~* 'x'`, `regexp_match(a, 'x')`.

Patterns in quotes of functions and operators of DataFusion are those of Rust.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from penstock.sql.datafusion.rust_patterns import (
    JavaPattern,
    PatternError,
    java_pattern,
    java_replacement,
)
from penstock.sql.text.calls import literal, rewrite_call
from penstock.sql.text.edits import DialectError, Edit
from penstock.sql.text.quoting import quote
from penstock.sql.text.sql import Call, Sql

_FUNCTIONS = ("regexp_count", "regexp_instr", "regexp_like", "regexp_match", "regexp_replace")
_OF_SPARK = ("regexp", "regexp_extract", "regexp_extract_all", "regexp_substr", "rlike", "split")
"""Functions of Spark with a pattern as second argument, besides `_FUNCTIONS`."""
_LOST_BACKSLASH = re.compile(r"(?<!\\)(?:\\\\)*(\\)(?=[dDwWsSbBpPxAz.+*?()\[\]{}|^$/-])")
"""A backslash before a character that Spark reads without it, as in `'\\d'`."""
_REFERENCE = re.compile(r"\\{1,2}(\d)|\$\{(\d+)\}")
_ESCAPE = re.compile(r"""\\([\\'"])""")
_NOT_AFTER_MATCH = r"(?!(?!\A)\G)"
"""Matches unless a match ends here, as one at the end of the text does."""
_POSITION_ARGUMENTS = 5
_REST = r"(?<rest>(?s:.*))\z"


class _Pattern(NamedTuple):
    """A pattern as SQL of Spark."""

    sql: str | None
    """The pattern in quotes; None if the argument stays as it is."""
    flags: str = ""
    """The flags in front of an argument that is no text in quotes."""
    java: JavaPattern | None = None

    @property
    def template(self) -> str:
        """The template of the pattern, where `{1}` is a text of `texts` or the argument."""
        return f"concat({quote(f'(?{self.flags})')}, {{1}})" if self.flags else "{1}"

    @property
    def texts(self) -> dict[int, str]:
        """The text in place of the argument."""
        return {} if self.sql is None else {1: self.sql}


_Rewritten = tuple[str, Mapping[int, str]]
"""A template, and texts in place of arguments."""


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields RLIKE and functions of Spark."""
    yield from _operators(sql)
    for call in sql.calls(*_FUNCTIONS):
        rewritten = _rewritten(sql, call)
        if rewritten is not None:
            yield rewrite_call(sql, call, *rewritten)
        elif len(call.arguments) > 1:
            yield from _backslashes(sql, call.arguments[1][0])
    for call in sql.calls(*_OF_SPARK):
        if len(call.arguments) > 1:
            yield from _backslashes(sql, call.arguments[1][0])


def _rewritten(sql: Sql, call: Call) -> _Rewritten | None:
    """Returns the translation of a call that Spark lacks, or None."""
    name, count = sql[call.name].value.lower(), len(call.arguments)
    if name == "regexp_match" and count in (2, 3):
        return _match(sql, call)
    if name == "regexp_like" and count == 3:
        pattern = _pattern(sql, call, 2)
        return f"regexp_like({{0}}, {pattern.template})", pattern.texts
    if name == "regexp_count" and count in (3, 4):
        pattern = _pattern(sql, call, 3)
        return f"regexp_count({_text_from(sql, call)}, {pattern.template})", pattern.texts
    if name == "regexp_instr" and count > 3:
        return _position(sql, call)
    if name == "regexp_replace" and count == 4:
        return _replace(sql, call)
    return None


def _text_from(sql: Sql, call: Call) -> str:
    """Returns the template of the text from the start that the third argument is."""
    return "{0}" if sql.slice(*call.arguments[2]) == "1" else "substr({0}, {2})"


def _backslashes(sql: Sql, index: int) -> Iterator[list[Edit]]:
    """Yields a second backslash for those that Spark removes from a pattern in quotes."""
    token = sql[index]
    if token.kind == "string" and sql.text[token.start] in "'\"":
        found = _LOST_BACKSLASH.finditer(sql.text[token.start : token.end])
        places = [token.start + match.start(1) for match in found]
        if places:
            yield [Edit(place, place, "\\") for place in places]


def _operators(sql: Sql) -> Iterator[list[Edit]]:
    for index, token in enumerate(sql.tokens):
        if sql.words(index, "SIMILAR", "TO"):
            yield [Edit(token.start, sql[index + 1].end, "RLIKE")]
        if sql.word(index) in ("RLIKE", "REGEXP") and index + 1 < len(sql):
            yield from _backslashes(sql, index + 1)
        if token.kind != "sign" or token.value not in ("~", "~*"):
            continue
        first = index - 1 if sql.is_sign(index - 1, "!") else index
        if sql.operand_before(first) is None or index + 1 >= len(sql):
            continue
        words = "NOT RLIKE" if first < index else "RLIKE"
        flags = "i" if token.value == "~*" else ""
        yield [Edit(sql[first].start, token.end, words), *_operand(sql, index + 1, flags)]


def _operand(sql: Sql, index: int, flags: str) -> Iterator[Edit]:
    """Yields the edits of the pattern after an operator."""
    token = sql[index]
    if token.kind != "string":
        if flags:
            raise _error(sql, (index, index + 1), "expected a pattern in quotes after ~*",
                         "use a RLIKE concat('(?i)', pattern)")  # fmt: skip
    elif index + 1 < len(sql) and (sql[index + 1].kind == "string" or sql.is_sign(index + 1, "||")):
        if flags:
            place = sql.text.index(sql.text[token.end - 1], token.start) + 1
            yield Edit(place, place, "(?iu)")
    else:
        written = _translated(sql, (index, index + 1), flags).sql
        if written is not None and written != sql.slice(index, index + 1):
            yield Edit(token.start, token.end, written)


def _match(sql: Sql, call: Call) -> _Rewritten:
    """Returns the translation to the groups of the first match, or to the whole match."""
    pattern = _pattern(sql, call, 2)
    if pattern.java is None:
        raise _error(
            sql, call.arguments[1],
            "expected a pattern in quotes as second argument of regexp_match",
            "use regexp_extract(text, pattern, group)",
        )  # fmt: skip
    numbers = range(1, len(pattern.java.groups) + 1) if pattern.java.groups else [0]
    values = ", ".join(f"regexp_extract({{0}}, {{1}}, {number})" for number in numbers)
    return f"CASE WHEN {{0}} RLIKE {{1}} THEN array({values}) END", pattern.texts


def _position(sql: Sql, call: Call) -> _Rewritten:
    """Returns the translation to the place of the first match from a start."""
    if sql.slice(*call.arguments[3]) != "1" or len(call.arguments) > _POSITION_ARGUMENTS:
        raise _error(sql, call.arguments[3], "regexp_instr finds the first match",
                     "use regexp_instr(substr(text, start), pattern)")  # fmt: skip
    pattern = _pattern(sql, call, 4)
    text = _text_from(sql, call)
    found = f"regexp_instr({text}, {pattern.template})"
    if text != "{0}":
        found = f"if({found} = 0, 0, {found} + {{2}} - 1)"
    return found, pattern.texts


def _replace(sql: Sql, call: Call) -> _Rewritten | None:
    """Returns the translation of regexp_replace with flags; None for a position, as in Spark."""
    flags = literal(sql, call.arguments[3])
    if flags is None:
        return None
    pattern = _pattern(sql, call, 3)
    replacement = _replacement(sql, call.arguments[2], pattern)
    texts = pattern.texts | ({} if replacement is None else {2: replacement})
    if "g" in flags:
        return f"regexp_replace({{0}}, {pattern.template}, {{2}})", texts
    before, after = f"{_NOT_AFTER_MATCH}(?:", f"){_REST}"
    first, new = "{1}", "{2}"
    if pattern.java is not None:
        texts[1] = quote(f"{before}{pattern.java.text}{after}")
    else:
        first = f"concat({quote(before)}, {pattern.template}, {quote(after)})"
    if replacement is not None:
        texts[2] = f"{replacement[:-1]}${{rest}}{replacement[-1]}"
    else:
        new = "concat({2}, '${rest}')"
    return f"regexp_replace({{0}}, {first}, {new})", texts


def _replacement(sql: Sql, part: tuple[int, int], pattern: _Pattern) -> str | None:
    """Returns the replacement in quotes of matches of a pattern; None if it is no literal."""
    if literal(sql, part) is None:
        return None
    written = sql.slice(*part)
    if pattern.java is None:
        return _REFERENCE.sub(lambda match: f"${match[1] or match[2]}", written)
    translated = java_replacement(_text(sql, part), pattern.java.groups)
    return written if translated == sql[part[0]].value else quote(translated)


def _pattern(sql: Sql, call: Call, position: int) -> _Pattern:
    """Returns the pattern of a call with the flags of an argument, if there is one."""
    flags = _flags(sql, call.arguments[position]) if len(call.arguments) > position else ""
    if literal(sql, call.arguments[1]) is not None:
        return _translated(sql, call.arguments[1], flags)
    return _Pattern(None, flags.replace("i", "iu"))


def _flags(sql: Sql, part: tuple[int, int]) -> str:
    """Returns the flags in an argument, without `g`."""
    flags = literal(sql, part)
    if flags is None or set(flags) - set("gimsx"):
        raise _error(sql, part, "expected flags in quotes: g, i, m, s or x",
                     "write the flags in the pattern, as in '(?i)a'")  # fmt: skip
    return flags.replace("g", "")


def _translated(sql: Sql, part: tuple[int, int], flags: str) -> _Pattern:
    """Returns a pattern in quotes; as it is written, if it has the same meaning in Java."""
    text = _text(sql, part)
    try:
        java = java_pattern(text, flags)
    except PatternError as error:
        raise _error(sql, part, str(error), "write the pattern without it") from None
    is_same = java.text == sql[part[0]].value
    return _Pattern(sql.slice(*part) if is_same else quote(java.text), java=java)


def _text(sql: Sql, part: tuple[int, int]) -> str:
    r"""Returns a text in quotes with the backslashes that Spark removes, as in `'\d'`."""
    written = sql.slice(*part)
    if written[0] not in "'\"":
        return sql[part[0]].value
    return _ESCAPE.sub(r"\1", written[1:-1])


def _error(sql: Sql, part: tuple[int, int], message: str, hint: str) -> DialectError:
    return DialectError(message, sql[part[0]].start, sql[part[1] - 1].end, hint)
