"""Numbers of transient errors of MySQL and MariaDB.

Sources: https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html and
https://mariadb.com/kb/en/mariadb-error-codes/
"""

from __future__ import annotations

TRANSIENT = frozenset(
    {
        3, 20, 1020, 1021, 1026, 1028, 1030, 1037, 1038, 1040, 1041, 1080, 1105, 1114, 1129,
        1135, 1180, 1181, 1203, 1205, 1206, 1213, 1226, 1290, 1317, 1412, 1615, 1792, 1836, 1878,
        1927, 1969, 3024, 3101, 3168, 3169,
    }
)  # fmt: skip
"""Connections, disks, memory, locks, limits, statements that were ended, read-only servers."""
HINTS = {
    **dict.fromkeys((3, 20, 1021, 1026, 1878), "Free disk space of the server."),
    1114: "Free disk space of the server.",
    1205: "Set timeout, or find the transaction with the lock in information_schema.INNODB_TRX.",
    1290: "The server is read-only. Check that url is the primary.",
    1836: "The server is read-only. Check that url is the primary.",
}
"""Hints by the number of a transient error."""
