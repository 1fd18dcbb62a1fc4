"""Spark session of a worker, which stays warm between drafts."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from penstock.plan.model import Plan
from penstock.runtime.session import new_session
from penstock.testing.suite import case_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAP = "1g"


class WarmSession:
    """A local session with settings for a few rows. Drafts with other packages start it anew."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._packages: list[str] | None = None
        self._spark: SparkSession | None = None

    def of(self, plan: Plan) -> SparkSession:
        """Returns a new session with the settings of a plan, as far as Spark allows changes."""
        packages = sorted(plan.spec.runtime.packages)
        if self._spark is None or packages != self._packages:
            self.close()
            self._spark = self._stack.enter_context(case_session(packages, heap=HEAP))
            self._packages = packages
        return new_session(self._spark, plan)

    def close(self) -> None:
        """Ends the session."""
        self._stack.close()
        self._spark = None
