"""The contract tests of each connector, collected by pytest."""

from __future__ import annotations

import io
import sys
from collections import defaultdict
from collections.abc import Collection
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from penstock.sdk import Capability
from penstock.testing.contract.applies import skip_reason
from penstock.testing.contract.component import ComponentContract

TESTS = Path(__file__).parents[1] / "tests" / "contract"


@dataclass
class Proof:
    """The contract tests of a variant of a component, by test class."""

    cases: dict[type[ComponentContract], list[pytest.Function]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def count(self, capabilities: Collection[Capability]) -> int:
        """Returns the number of tests for these capabilities, including excused tests."""
        return sum(
            _applies(item, case, capabilities)
            for case, items in self.cases.items()
            for item in items
        )

    @property
    def excused(self) -> list[tuple[str, str]]:
        """The excused tests of each class, with reasons."""
        return [
            excuse
            for case in self.cases
            for excuse in (case.unsupported | case.known_failures).items()
        ]

    @property
    def lossy_reasons(self) -> list[str]:
        """The reasons for a possible loss of messages."""
        reasons = (getattr(case, "lossy_reason", None) for case in self.cases)
        return [*dict.fromkeys(reason for reason in reasons if reason)]

    @property
    def limits(self) -> list[str]:
        """The options that limit a batch."""
        return sorted({name for case in self.cases for name in getattr(case, "batch_limit", ())})

    @property
    def servers(self) -> list[str]:
        """The titles of the servers used by the tests."""
        modules = {sys.modules[case.__module__] for case in self.cases}
        found = (
            getattr(each, "title", None) for module in modules for each in vars(module).values()
        )
        return sorted({title for title in found if isinstance(title, str)})


def proofs() -> dict[tuple[type[Any], str], Proof]:
    """Returns the tests by component and variant. Only collects tests, starts no server."""
    found: dict[tuple[type[Any], str], Proof] = defaultdict(Proof)
    for item in _collected():
        case = item.cls
        if case is not None and issubclass(case, ComponentContract) and _of_contract(item):
            found[case.component, case.variant].cases[case].append(item)
    return found


def _collected() -> list[pytest.Function]:
    collector = _Collector()
    command = ["--collect-only", "-q", "-p", "no:cacheprovider", str(TESTS)]
    with redirect_stdout(io.StringIO()) as printed:
        code = pytest.main(command, plugins=[collector])
    if code != 0:
        raise SystemExit(printed.getvalue())
    return collector.items


class _Collector:
    items: list[pytest.Function]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items = [each for each in session.items if isinstance(each, pytest.Function)]


def _of_contract(item: pytest.Function) -> bool:
    """Returns whether a test is defined by the contract, not only by the class of a connector."""
    return any(
        item.originalname in vars(base)
        for base in item.cls.__mro__
        if base.__module__.startswith(ComponentContract.__module__.rpartition(".")[0])
    )


def _applies(
    item: pytest.Function, case: type[ComponentContract], capabilities: Collection[Capability]
) -> bool:
    instance = case()
    instance.capabilities = frozenset(capabilities)
    return skip_reason(item.function, instance) is None
