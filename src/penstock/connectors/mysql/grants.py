"""GRANT statements for missing privileges."""

from __future__ import annotations

import re

from penstock.core.names import quote_name, standard_literal

_OF_TABLE = re.compile(
    r"^([A-Z ,]+) command denied to user .* for (?:column '.*' in )?table (.*)$", re.DOTALL
)
_OF_SERVER = re.compile(r"\(at least one of\) the ([A-Z ,]+) privilege")
_OF_DATABASE = re.compile(r"^Access denied for user ('.*'@'.*') to database '(.*)'$", re.DOTALL)


def grant_of(reason: str, account: str, database: str) -> str:
    """Returns the hint for a message of the server about a missing privilege.

    `account` is the user with the host, as `name@host`. The server names tables of `database`
    without it.
    """
    user = quoted_account(account)
    if match := _OF_TABLE.search(reason):
        table = match[2]
        if not table.startswith("`"):
            table = f"{quote_name(database)}.{quote_name(table.strip(chr(39)))}"
        return f"Run GRANT {match[1]} ON {table} TO {user}."
    if match := _OF_SERVER.search(reason):
        name = match[1].split(",")[-1].strip()
        return f"Run GRANT {name} ON *.* TO {user}."
    if match := _OF_DATABASE.search(reason):
        return f"Run GRANT SELECT, INSERT ON {quote_name(match[2])}.* TO {match[1]}."
    return "Grant the user the privilege, as in GRANT SELECT ON ... TO ..."


def quoted_account(account: str) -> str:
    """Returns an account as `'name'@'host'`."""
    return "@".join(map(standard_literal, account.rsplit("@", 1)))
