"""Character sets of MySQL and MariaDB.

Source: https://dev.mysql.com/doc/refman/8.4/en/charset-charsets.html
"""

from __future__ import annotations

BINARY = "binary"
_CODECS = {
    "utf8mb4": "utf-8", "utf8mb3": "utf-8", "utf8": "utf-8", "ascii": "ascii",
    "ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be",
    "latin2": "iso8859-2", "latin5": "iso8859-9", "latin7": "iso8859-13", "greek": "iso8859-7",
    "hebrew": "iso8859-8", "koi8r": "koi8-r", "koi8u": "koi8-u", "cp866": "cp866",
    "cp850": "cp850", "cp852": "cp852", "cp1250": "cp1250", "cp1251": "cp1251",
    "cp1256": "cp1256", "cp1257": "cp1257", "gb18030": "gb18030",
}  # fmt: skip
_LATIN1 = {code: bytes([code]).decode("cp1252", "ignore") or chr(code) for code in range(256)}
"""latin1 of MySQL is cp1252 with characters for its five unused codes."""


def is_known(charset: str) -> bool:
    """Returns whether texts of a character set can be decoded."""
    return charset in _CODECS or charset == "latin1"


def decode(data: bytes, charset: str | None) -> str | bytes:
    """Returns a text; the bytes if they are not a text of the character set."""
    if charset == "latin1":
        return data.decode("latin-1").translate(_LATIN1)
    try:
        return data.decode(_CODECS[charset or ""])
    except (KeyError, UnicodeDecodeError):
        return data
