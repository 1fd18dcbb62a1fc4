"""The triggers of a landing table that maintain an aggregate table."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from penstock.connectors.postgres.aggregate.merge import Merge
from penstock.connectors.postgres.types import DIALECT
from penstock.core.names import standard_literal
from penstock.sdk.database import Connection, TableName

_INSTALLED = """
SELECT t.tgname, p.prosrc FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
WHERE t.tgrelid = to_regclass(\0) AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')
"""
_NEW, _OLD = "penstock_new", "penstock_old"
_EVENTS = {
    "lock": "BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {0}",
    "insert": f"AFTER INSERT ON {{0}} REFERENCING NEW TABLE AS {_NEW}",
    "update": f"AFTER UPDATE ON {{0}} REFERENCING NEW TABLE AS {_NEW} OLD TABLE AS {_OLD}",
    "delete": f"AFTER DELETE ON {{0}} REFERENCING OLD TABLE AS {_OLD}",
    "truncate": "AFTER TRUNCATE ON {0}",
}


@dataclass(frozen=True)
class Triggers:
    """The triggers for an aggregate table. Their functions are in its schema.

    The first one takes a lock of the aggregate table until the end of the transaction, before a
    landing row is locked. So writers wait for each other and see the rows of each other.
    """

    merge: Merge

    @cached_property
    def functions(self) -> Mapping[str, str]:
        """The bodies of the functions by the names of function and trigger."""
        merge = self.merge
        bodies = {
            "lock": f"PERFORM pg_advisory_xact_lock({self._lock});",
            "insert": f"{merge.statement((1, _NEW))};",
            "update": f"{merge.statement((1, _NEW), (-1, _OLD))};",
            "delete": f"{merge.statement((-1, _OLD))};",
            "truncate": f"DELETE FROM {DIALECT.table(merge.table)};",
        }
        return {
            self._name(event): f"#variable_conflict use_column\nBEGIN {body} RETURN NULL; END"
            for event, body in bodies.items()
        }

    def are_installed(self, connection: Connection) -> bool:
        """Returns whether the triggers exist, with these functions."""
        installed = dict(connection.query(_INSTALLED, (DIALECT.table(self.merge.landing),)))
        return all(installed.get(name) == body for name, body in self.functions.items())

    def install(self, connection: Connection) -> None:
        """Creates or replaces the functions and the triggers."""
        landing = DIALECT.table(self.merge.landing)
        for (name, body), event in zip(self.functions.items(), _EVENTS.values(), strict=True):
            function = DIALECT.table(self.merge.table.sibling(name))
            connection.execute(
                f"CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql "
                "SET search_path FROM CURRENT SET extra_float_digits = 1 "
                f"AS {standard_literal(body)}"
            )
            connection.execute(
                f"CREATE OR REPLACE TRIGGER {DIALECT.quote(name)} {event.format(landing)} "
                f"FOR EACH STATEMENT EXECUTE FUNCTION {function}()"
            )

    def index(self, table: TableName) -> TableName:
        """Returns the name of the index of the groups of a table."""
        return table.sibling(self._name("groups" if table == self.merge.table else "rows"))

    @property
    def _lock(self) -> int:
        return int.from_bytes(self._digest[:8], signed=True)

    @cached_property
    def _digest(self) -> bytes:
        names = f"{DIALECT.table(self.merge.landing)} {DIALECT.table(self.merge.table)}"
        return hashlib.sha256(names.encode()).digest()

    def _name(self, event: str) -> str:
        return f"penstock_{self._digest[:6].hex()}_{event}"
