"""Patterns of Rust and their counterparts in Java."""

from __future__ import annotations

import pytest

from penstock.sql.datafusion.rust_patterns import PatternError, java_pattern, java_replacement


@pytest.mark.parametrize(
    ("pattern", "flags", "expected"),
    [
        (r"^[a-z]+(x|y)\.\$?", "", r"^[a-z]+(x|y)\.\$?"),
        (r"\w\.\W", "", r"(?U)\w\.\W"),
        (r"a.b$", "", r"(?d)a.b\z"),
        (r"^a$", "m", r"(?md)^a$"),
        (r"(?m)^a$", "", r"(?d)(?m)^a$"),
        (r"a", "ix", r"(?ixu)a"),
        (r"(?i)a(?x-i:b)", "", r"(?iu)a(?x-i:b)"),
        (r"(?-u)\d(?-u:\d)", "", r"(?U)(?-uU)\d(?-uU:\d)"),
        (r"(?P<a>x)(?<b_c>y)(?:z)(w)", "", r"(x)(y)(?:z)(w)"),
        (r"(?=a)(?!b)(?<=c)(?<!d)(?>e)", "", r"(?=a)(?!b)(?<=c)(?<!d)(?>e)"),
        (r"[(.$][[:digit:]x][^[:^upper:]]", "", r"[(.$][0-9x][^[^A-Z]]"),
        (r"[]a][^]b]$", "", r"[]a][^]b]\z"),
        (r"[:digit:]$", "", r"[:digit:]\z"),
        (r"\pL\p{^Lu}\p{greek}\p{Script=Han}", "", r"\p{L}\P{Lu}\p{Isgreek}\p{Script=Han}"),
        (r"\p{White_Space}\p{IsLatin}", "", r"\p{IsWhite_Space}\p{IsLatin}"),
        (r"\p{decimal number}\p{Other_Letter}", "", r"\p{Nd}\p{Lo}"),
        (r"\x41\x{e9}\u{1F600}\u00e9\U0001F600", "", r"\x41\x{e9}\x{1F600}\u00e9\x{1F600}"),
        (r"\\d\Q.(\E\v", "", r"\\d\Q.(\E\x0B"),
        (r"\b{start}a\>", "", r"(?U)\b(?=\w)a\b(?<=\w)"),
    ],
)  # fmt: skip
def test_pattern(pattern: str, flags: str, expected: str) -> None:
    assert java_pattern(pattern, flags).text == expected


def test_groups_have_names() -> None:
    assert java_pattern(r"(a)\((?<b>[(])(?P<c>(?:x)|(y))").groups == ("", "b", "c", "")


@pytest.mark.parametrize("pattern", ["(?U)a.*", "(?R)^a", "(?U:a)"])
def test_flags_without_a_counterpart(pattern: str) -> None:
    with pytest.raises(PatternError, match="has no counterpart in Java"):
        java_pattern(pattern)


@pytest.mark.parametrize(
    ("replacement", "expected"),
    [
        ("$1-${2}-$b-${b}", "$1-$2-$2-$2"),
        (r"\1x\2", "$1x$2"),
        ("${1}2", r"$1\2"),
        ("$1a${b}_$b_", "$2_"),
        ("US$5 $12 $ $$ ${", r"US  \$ \$ \${"),
        (r"\n\x", r"\\n\\x"),
        ("$0$$1", r"$0\$1"),
        ("", ""),
    ],
)
def test_replacement(replacement: str, expected: str) -> None:
    assert java_replacement(replacement, ("", "b")) == expected
