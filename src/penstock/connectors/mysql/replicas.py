"""Replicas, which do not have the open transactions of their primary."""

from __future__ import annotations

from penstock.connectors.mysql.connection import MysqlConnection, error_number
from penstock.core.errors import Permanent

_PARSE_ERROR, _NO_PRIVILEGE = 1064, 1227
_OF_MARIADB = ("SHOW ALL SLAVES STATUS",)
_OF_MYSQL = ("SHOW REPLICA STATUS", "SHOW SLAVE STATUS")
"""The statements of MySQL 8.0.22 and later, and of earlier versions."""


def check_primary(connection: MysqlConnection) -> None:
    """Raises Permanent for a replica that is read-only.

    Other replicas have changes of their own, and are not known without a privilege.
    """
    ((is_read_only,),) = connection.query("SELECT @@global.read_only")
    if is_read_only and _replicates(connection):
        raise Permanent(
            f"{connection.config.address} is a replica, which does not have the open transactions "
            "of its primary: with watch, rows that are committed late would be missed",
            code="standby",
            hint="Set url to the primary, or cursor_columns to a time and min_age to the longest "
            "time of a transaction.",
        )


def _replicates(connection: MysqlConnection) -> bool:
    """Returns whether a server is known to be a replica."""
    for statement in _OF_MARIADB if connection.is_mariadb else _OF_MYSQL:
        try:
            return bool(connection.query(statement))
        except Permanent as error:
            if error_number(error) not in (_PARSE_ERROR, _NO_PRIVILEGE):
                raise
    return False
