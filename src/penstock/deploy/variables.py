"""Environment variables that the files of a pipeline read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar, overload

from penstock.spec.documents.profiles import VARIABLE
from penstock.spec.documents.secrets import DIRECTORY

T = TypeVar("T")


class RecordedVariables(Mapping[str, str]):
    """An environment that records the names that are read.

    `required` are names without a default, `optional` are those with one. A required variable that
    is not set has its name as value and is in `unset`: files can be read on a machine without the
    values of the cluster. Connections of a server of Penstock are left out.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.required: set[str] = set()
        self.optional: set[str] = set()
        self.unset: set[str] = set()

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)

    def __getitem__(self, name: str) -> str:
        self.required.add(name)
        if name not in self._environment:
            self.unset.add(name)
        return self._environment.get(name, name)

    @overload
    def get(self, key: str, /) -> str | None: ...
    @overload
    def get(self, key: str, /, default: str | T) -> str | T: ...
    def get(self, key: str, /, default: object = None) -> object:
        if key == VARIABLE:
            return default
        if key != DIRECTORY:
            self.optional.add(key)
        return self._environment.get(key, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._environment)

    def __len__(self) -> int:
        return len(self._environment)

    def names(self) -> dict[str, bool]:
        """Returns the names that were read, in order, each with whether it is required."""
        return {name: name in self.required for name in sorted(self.required | self.optional)}
