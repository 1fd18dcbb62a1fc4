"""Limits of connections of database servers, by the messages of the servers."""

from __future__ import annotations

import pytest

from penstock.sdk.database.errors import ServerErrors


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ('FATAL: too many connections for role "u"', "Run ALTER ROLE ... CONNECTION LIMIT "),
        ('FATAL: too many connections for database "d"', "Run ALTER DATABASE ... CONNECTION "),
        ("FATAL: sorry, too many clients already", "Raise max_connections of the server, "),
        ("FATAL: remaining connection slots are reserved for roles with the SUPERUSER attribute",
         "Raise max_connections of the server, "),
        ("Too many connections", "Raise max_connections of the server, "),
        ("User 'u' has exceeded the 'max_user_connections' resource (current value: 1)",
         "Raise max_user_connections of the user "),
        ("User u already has more than 'max_user_connections' active connections",
         "Raise max_user_connections of the user "),
    ],
)  # fmt: skip
def test_a_limit_of_connections_names_its_setting(reason: str, hint: str) -> None:
    error = ServerErrors("h:1/d").busy(reason, None)
    assert error.message == f"could not connect to the database h:1/d: {reason}"
    assert error.code == "busy" and str(error.hint).startswith(hint)


def test_other_transient_errors_are_of_statements() -> None:
    error = ServerErrors("h:1/d").busy("deadlock detected", "Hint.")
    assert error.message.startswith("could not execute the statement: ") and error.hint == "Hint."
