"""Sources of systems with topics, which the server lists for an editor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class ListedTopics(ABC):
    """A source that reads topics of a system, and can list the others."""

    example: ClassVar[Mapping[str, Any]] = {"topic": "penstock_discovery"}
    """Options that name some topic."""

    @abstractmethod
    def topic_names(self) -> Sequence[str]:
        """Returns the names of the topics. Consumes nothing. Raises Transient or Permanent."""
