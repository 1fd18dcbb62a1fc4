"""Checks of privileges by components, for the steps of the access of a connection.

A component without them is checked as before a run: a missing privilege may show at the first
batch only.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class ChecksAccess(Protocol):
    """A source or sink that checks the privileges to read or write. It reads and writes nothing."""

    def check_access(self) -> bool:
        """Returns whether the system has answered for the privileges. Raises Permanent without one.

        The checks before a run are among its checks.
        """


@runtime_checkable
class ChecksCreation(Protocol):
    """A sink that checks the privilege to create its target. It creates nothing."""

    def check_creation(self) -> bool:
        """Returns whether the system has answered. Raises Permanent without the privilege."""
