"""User-defined functions, as far as the analysis of SQL requires."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class UserFunctions:
    """Names of user-defined functions in lower case, and their properties."""

    names: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    """Functions over several rows."""
    nondeterministic: frozenset[str] = frozenset()
    """Functions whose results differ between two evaluations of the same rows."""


NO_FUNCTIONS = UserFunctions()
