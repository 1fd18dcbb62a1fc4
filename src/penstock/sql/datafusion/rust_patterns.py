r"""Regular expressions of Rust, as those of Java with the same meaning.

Both have most of their syntax in common. A pattern is changed only where its meaning differs: `\w`,
`\d`, `\s`, `\b` and `(?i)` are Unicode in Rust, `.` ends at `\n` only, `$` matches at the end only,
`[[:alpha:]]` is a class of ASCII. Syntax that only Java has, as `(?=a)`, stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
      (?P<quoted> \\Q .*? (?: \\E | \Z ) )
    | \\ (?P<property> [pP] ) (?: \{ (?P<name> [^}]* ) \} | (?P<letter> [A-Z] ) )
    | \\ [xuU] \{ (?P<code> [0-9A-Fa-f]+ ) \} | \\U (?P<long> [0-9A-Fa-f]{8} )
    | \\ (?P<boundary> [<>] | b \{ (?: start | end ) \} )
    | \\ (?P<escape> . )
    | (?P<posix> \[ : \^? [a-z]+ : \] )
    | \( \? P? < (?! [=!] ) (?P<group> [^>]* ) >
    | \( \? (?P<flags> [A-Za-z-]+ ) (?P<scope> [:)] )
    | (?P<opening> \( ) (?! \? )
    | (?P<class> \[ \^? \]? ) | (?P<close> \] )
    | (?P<dot> \. ) | (?P<end> \$ )
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_CLASS = frozenset({"property", "code", "long", "escape", "posix", "class", "close"})
_UNICODE = frozenset("wWdDsSbB")
"""Escapes that are ASCII in Java without the flag U."""
_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7F", "blank": r"\t\x20",
    "cntrl": r"\x00-\x1F\x7F", "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": r"\x20-~",
    "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\x0B\f\r\x20", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_PROPERTIES = {
    "alpha": "IsAlphabetic", "casedletter": "LC", "closepunctuation": "Pe",
    "connectorpunctuation": "Pc", "control": "Cc", "currencysymbol": "Sc",
    "dashpunctuation": "Pd", "decimalnumber": "Nd", "digit": "Nd", "finalpunctuation": "Pf",
    "format": "Cf", "initialpunctuation": "Pi", "letter": "L", "letternumber": "Nl", "lower":
    "IsLowercase", "lowercaseletter": "Ll", "mark": "M", "mathsymbol": "Sm", "modifierletter": "Lm",
    "modifiersymbol": "Sk", "nonspacingmark": "Mn", "number": "N", "openpunctuation": "Ps",
    "other": "C", "otherletter": "Lo", "othernumber": "No", "otherpunctuation": "Po",
    "othersymbol": "So", "punct": "P", "punctuation": "P", "separator": "Z", "space":
    "IsWhite_Space", "spaceseparator": "Zs", "symbol": "S", "titlecaseletter": "Lt", "upper":
    "IsUppercase", "uppercaseletter": "Lu", "whitespace": "IsWhite_Space",
}  # fmt: skip
"""Names in Java of Rust's classes, which are compared without case, spaces, `-` and `_`."""
_SHORT = 2
"""The length of the short names of classes, as `Lu`."""
_WORD_STARTS, _WORD_ENDS = r"\b(?=\w)", r"\b(?<=\w)"
_REFERENCE = re.compile(
    r"(?P<dollar>\$\$)|\$(?P<name>[0-9A-Za-z_]+)|\$\{(?P<braced>[^}]*)\}|(?P<sign>[$\\])"
)


class PatternError(Exception):
    """A part of a pattern that has no counterpart in Java."""


class JavaPattern(NamedTuple):
    """A regular expression of Java and the names of its groups, empty for groups without one."""

    text: str
    groups: tuple[str, ...]


def java_pattern(text: str, flags: str = "") -> JavaPattern:
    """Returns the counterpart of a pattern of Rust under flags such as `im`.

    Raises PatternError at a flag without a counterpart.
    """
    return _Pattern(text, flags).translate()


def java_replacement(text: str, groups: tuple[str, ...]) -> str:
    r"""Returns the counterpart of a replacement in DataFusion, where `\1` is a group too.

    A group that the pattern lacks is empty.
    """
    text = re.sub(r"\\(\d+)", r"${\1}", text)
    parts, position = [""], 0
    for match in _REFERENCE.finditer(text):
        parts += _plain(parts[-1], text[position : match.start()])
        position = match.end()
        if match["dollar"] or match["sign"]:
            parts.append("\\" + match[0][0])
        elif number := _group(match["name"] or match["braced"], groups):
            parts.append(f"${number}")
    return "".join([*parts, *_plain(parts[-1], text[position:])])


def _plain(before: str, text: str) -> list[str]:
    """Returns a text that follows a reference, whose number its first digit would extend."""
    if not text:
        return []
    is_extended = before.startswith("$") and text[0].isdecimal()
    return ["\\" + text if is_extended else text]


def _group(name: str | None, groups: tuple[str, ...]) -> str | None:
    if name and name.isdecimal():
        return str(int(name)) if int(name) <= len(groups) else None
    return str(groups.index(name) + 1) if name and name in groups else None


class _Pattern:
    """The translation of one pattern."""

    def __init__(self, text: str, flags: str) -> None:
        self.text = text
        self.flags = flags
        self.groups: list[str] = []
        self.needed: set[str] = set()
        self.depth = 0
        inline = [match["flags"] or "" for match in _TOKEN.finditer(text)]
        self.has_lines = any("m" in each.partition("-")[0] for each in (flags, *inline))

    def translate(self) -> JavaPattern:
        body = "".join(self._parts())
        on = _java_flags(self.flags) + "".join(sorted(self.needed))
        return JavaPattern(f"(?{on}){body}" if on else body, tuple(self.groups))

    def _parts(self) -> Iterator[str]:
        position = 0
        for match in _TOKEN.finditer(self.text):
            yield self.text[position : match.start()]
            yield self._part(match)
            position = match.end()
        yield self.text[position:]

    def _part(self, match: re.Match[str]) -> str:
        kind = match.lastgroup or ""
        if match["property"]:
            return _property(match["property"], match["name"] or match["letter"] or "")
        if self.depth and kind not in _IN_CLASS:
            return match[0]
        if kind == "scope":
            return f"(?{_java_flags(match['flags'])}{match['scope']}"
        if kind in ("code", "long"):
            return f"\\x{{{(match['code'] or match['long']).lstrip('0') or '0'}}}"
        handler = getattr(self, f"_{kind}", None)
        return str(handler(match)) if handler is not None else match[0]

    def _boundary(self, match: re.Match[str]) -> str:
        self.needed.add("U")
        return _WORD_STARTS if match["boundary"] in ("<", "b{start}") else _WORD_ENDS

    def _escape(self, match: re.Match[str]) -> str:
        if match["escape"] in _UNICODE:
            self.needed.add("U")
        return r"\x0B" if match["escape"] == "v" else match[0]

    def _posix(self, match: re.Match[str]) -> str:
        name = match["posix"][2:-2].removeprefix("^")
        if not self.depth or name not in _POSIX:
            return match[0]
        return f"[^{_POSIX[name]}]" if match[0][2] == "^" else _POSIX[name]

    def _group(self, match: re.Match[str]) -> str:
        self.groups.append(match["group"])
        return "("

    def _opening(self, match: re.Match[str]) -> str:
        self.groups.append("")
        return match[0]

    def _class(self, match: re.Match[str]) -> str:
        self.depth += 1
        return match[0]

    def _close(self, match: re.Match[str]) -> str:
        self.depth = max(self.depth - 1, 0)
        return match[0]

    def _dot(self, match: re.Match[str]) -> str:
        self.needed.add("d")
        return match[0]

    def _end(self, match: re.Match[str]) -> str:
        if self.has_lines:
            self.needed.add("d")
            return match[0]
        return r"\z"


def _java_flags(flags: str) -> str:
    on, _, off = flags.partition("-")
    for flag in "UR":
        if flag in flags:
            raise PatternError(f"the flag {flag} of a pattern has no counterpart in Java")
    on_ = [each if each != "u" else "U" for each in on]
    if "i" in on and "u" not in off:
        on_.append("u")
    off_ = ["uU" if each == "u" else each for each in off]
    return "".join(on_) + ("-" + "".join(off_) if off_ else "")


def _property(sign: str, name: str) -> str:
    """Returns a class of characters by its name."""
    if name.startswith("^"):
        sign, name = ("P" if sign == "p" else "p"), name[1:]
    known = _PROPERTIES.get(re.sub("[-_ ]", "", name).lower())
    if known is None and len(name) <= _SHORT:
        known = name.capitalize()
    if known is None:
        known = name if "=" in name or name.startswith(("Is", "In", "java")) else f"Is{name}"
    return f"\\{sign}{{{known}}}"
