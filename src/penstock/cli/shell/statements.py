"""Statements that only the shell has: SHOW, DESCRIBE, EXPLAIN, DROP, SET and RESET."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from penstock.cli.shell import catalog
from penstock.cli.shell.input import Part
from penstock.cli.shell.shell import Shell
from penstock.core.errors import UserError
from penstock.sql.text.quoting import CLOSED

Execute = Callable[[Shell, Part, "re.Match[str]"], None]

_NAME = r"""(?P<name>[\w.]+|`[^`]+`|"[^"]+")"""
_QUERY = r"(?P<query>(?:SELECT|WITH|VALUES|FROM|INSERT|CREATE|\().*)"


class ShellStatement(NamedTuple):
    """A statement: its forms, its pattern, and the function that executes it."""

    usage: str
    pattern: re.Pattern[str]
    execute: Execute


def execute_statement(shell: Shell, part: Part) -> bool:
    """Executes a statement that only the shell has. Returns whether it is one.

    Raises PenstockError.
    """
    text = CLOSED.sub(_blank_comment, part.text).rstrip()
    word = re.split(r"\W", text, maxsplit=1)[0].upper()
    forms = STATEMENTS.get(word, ())
    for form in forms:
        match = form.pattern.fullmatch(text)
        if match:
            form.execute(shell, part, match)
            return True
    if not forms or word == "SET":
        return False
    raise UserError(
        f"expected {', '.join(form.usage for form in forms)}", code="usage", where=part.location
    )


def _blank_comment(match: re.Match[str]) -> str:
    is_comment = match[0].startswith(("--", "/*"))
    return re.sub(r"[^\n]", " ", match[0]) if is_comment else match[0]


def _name(match: re.Match[str]) -> str:
    return match["name"].strip('`"')


def _list(*kinds: str) -> Execute:
    return lambda shell, _, __: catalog.list_entries(shell, kinds)


def _describe(shell: Shell, part: Part, match: re.Match[str]) -> None:
    catalog.describe(shell, _name(match))


def _describe_query(shell: Shell, part: Part, match: re.Match[str]) -> None:
    catalog.describe_query(shell, _query_of(part, match))


def _show_create(shell: Shell, part: Part, match: re.Match[str]) -> None:
    catalog.show_create(shell, _name(match))


def _explain(shell: Shell, part: Part, match: re.Match[str]) -> None:
    catalog.explain(shell, _query_of(part, match))


def _drop(shell: Shell, part: Part, match: re.Match[str]) -> None:
    kind = match["kind"].lower().replace("macro", "function")
    catalog.drop(shell, _name(match), kinds=(kind,), if_exists=bool(match["exists"]))


def _list_settings(shell: Shell, part: Part, match: re.Match[str]) -> None:
    catalog.list_settings(shell)


def _reset(shell: Shell, part: Part, match: re.Match[str]) -> None:
    catalog.reset(shell, "" if match["name"] is None else _name(match))


def _query_of(part: Part, match: re.Match[str]) -> Part:
    """Returns the query at the end of a statement, as a part of the input."""
    return replace(part, start=part.start + match.start("query"))


def _form(usage: str, pattern: str, execute: Execute) -> ShellStatement:
    spaced = pattern.replace(" ", r"\s+")
    return ShellStatement(usage, re.compile(spaced, re.IGNORECASE | re.DOTALL), execute)


_DESCRIBE_FORMS = (
    _form("DESCRIBE query", rf"(?:DESCRIBE|DESC) (?:QUERY )?{_QUERY}", _describe_query),
    _form("DESCRIBE NAME",
          rf"(?:DESCRIBE|DESC) (?:TABLE |VIEW |FUNCTION )?(?:EXTENDED |FORMATTED )?{_NAME}",
          _describe),
)  # fmt: skip
STATEMENTS = {
    "SHOW": (
        _form("SHOW TABLES", "SHOW (?:ALL )?TABLES", _list("table", "view")),
        _form("SHOW VIEWS", "SHOW VIEWS", _list("view")),
        _form("SHOW FUNCTIONS", "SHOW (?:USER |ALL )?FUNCTIONS", _list("function")),
        _form("SHOW COLUMNS FROM NAME", rf"SHOW COLUMNS (?:FROM|IN) {_NAME}", _describe),
        _form("SHOW CREATE TABLE NAME",
              rf"SHOW CREATE (?:TABLE|VIEW|FUNCTION|MACRO) {_NAME}", _show_create),
        _form("SHOW ALL", "SHOW ALL", _list_settings),
    ),
    "DESCRIBE": _DESCRIBE_FORMS,
    "DESC": _DESCRIBE_FORMS,
    "EXPLAIN": (
        _form("EXPLAIN query",
              rf"EXPLAIN (?:PLAN FOR |EXTENDED |FORMATTED |ANALYZE |VERBOSE )*{_QUERY}", _explain),
    ),
    "DROP": (
        _form("DROP TABLE NAME or DROP VIEW NAME",
              "DROP (?:TEMPORARY |TEMP )?(?P<kind>TABLE|VIEW|FUNCTION|MACRO) "
              rf"(?P<exists>IF EXISTS )?{_NAME}(?: CASCADE| RESTRICT)?", _drop),
    ),
    "SET": (_form("SET", "SET", _list_settings),),
    "RESET": (
        _form("RESET NAME or RESET ALL", rf"RESET(?: ALL| {_NAME})?", _reset),
    ),
}  # fmt: skip
"""The statements by their first word."""
