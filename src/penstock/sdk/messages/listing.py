"""Sources of systems with topics, which are listed for users and editors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

EXAMPLE = "penstock_discovery"
"""The name of a topic that need not exist."""


class ListedTopics(ABC):
    """A source that reads topics of a system by their names, and can list the names."""

    listed_options: ClassVar[tuple[str, ...]] = ("topic",)
    """The options whose values are listed. The first one, alone, makes a valid source."""

    @classmethod
    @abstractmethod
    def topic_names(cls, config: Any, option: str) -> Sequence[str]:
        """Returns the names that exist for an option. Consumes nothing.

        Raises Transient or Permanent.
        """
