"""What the connectors' tests are about: those of the contract, as pytest collects them."""

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
from penstock.testing.contract.applies import skipped
from penstock.testing.contract.component import ComponentContract

TESTS = Path(__file__).parents[1] / "tests" / "contract"


@dataclass
class Proof:
    """The tests of one variant of a component, by the classes that they are in."""

    cases: dict[type[ComponentContract], list[pytest.Function]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def count(self, capabilities: Collection[Capability]) -> int:
        """How many tests are about what has these capabilities; those excused are among them."""
        return sum(
            not _skipped(item, case, capabilities)
            for case, items in self.cases.items()
            for item in items
        )

    @property
    def excused(self) -> list[tuple[str, str]]:
        """The tests that are known to fail, each with the reason; one for each class."""
        return [excuse for case in self.cases for excuse in (case.never | case.notyet).items()]

    @property
    def forgets(self) -> list[str]:
        """Why messages may be lost, if the system is such."""
        found = (getattr(case, "forgets", None) for case in self.cases)
        return [*dict.fromkeys(reason for reason in found if reason)]

    @property
    def limits(self) -> list[str]:
        """The options that limit a batch."""
        return sorted({name for case in self.cases for name in getattr(case, "limited", ())})

    @property
    def servers(self) -> list[str]:
        """What the tests run against, as the fixtures in `tests/servers` call it."""
        modules = {sys.modules[case.__module__] for case in self.cases}
        found = (
            getattr(each, "title", None) for module in modules for each in vars(module).values()
        )
        return sorted({title for title in found if isinstance(title, str)})


def proofs() -> dict[tuple[type[Any], str], Proof]:
    """By component and variant. Starts no server: the tests are only collected."""
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
    """Whether a test is one that all connectors have, and not one of the class's own."""
    return any(
        item.originalname in vars(base)
        for base in item.cls.__mro__
        if base.__module__.startswith(ComponentContract.__module__.rpartition(".")[0])
    )


def _skipped(
    item: pytest.Function, case: type[ComponentContract], capabilities: Collection[Capability]
) -> bool:
    instance = case()
    instance.capabilities = frozenset(capabilities)
    fixtures = item._fixtureinfo.name2fixturedefs.values()
    absent = any(getattr(each[-1].func, "absent", False) for each in fixtures)
    return absent or skipped(item.function, instance) is not None
