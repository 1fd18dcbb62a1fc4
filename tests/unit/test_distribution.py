"""The order of the tests in a whole run."""

from __future__ import annotations

from collections import Counter, OrderedDict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from distribution import PLAIN_PROCESS, SERVERS, WITHOUT_SPARK, Scheduling, module_places


def test_servers_are_spread_over_the_slow_modules() -> None:
    groups = {Path(f"tests/contract/test_{kind}.py"): kind for kind in SERVERS}
    groups |= {
        Path(f"tests/{directory}/test_{number}.py"): f"{directory}/test_{number}"
        for directory in ("unit", "integration")
        for number in range(3 * len(SERVERS))
    }
    places = module_places(groups)
    order = [path.parts[1] for path in sorted(groups, key=lambda path: places[path])]
    spread = ["contract", *["integration"] * 3] * len(SERVERS)
    assert order == [*spread, *["unit"] * 3 * len(SERVERS)]


def test_contracts_are_the_last_of_a_server() -> None:
    paths = [Path(f"tests/{name}/test_kafka.py") for name in ("contract", "chaos", "integration")]
    places = module_places(dict.fromkeys(paths, "kafka"))
    assert [path.parts[1] for path in sorted(paths, key=lambda path: places[path])] == [
        "chaos", "integration", "contract"
    ]  # fmt: skip


def test_module_names_are_unique() -> None:
    """Pytest imports the modules of directories without packages by their names alone."""
    tests = Path(__file__).resolve().parents[1]
    counts = Counter(path.name for path in tests.rglob("test_*.py"))
    assert [name for name, count in counts.items() if count > 1] == []


class Process:
    """A process of tests: the places of the tests that it runs."""

    def __init__(self, name: str) -> None:
        self.gateway, self.ran, self.ended = SimpleNamespace(id=name), list[int](), False

    def send_runtest_some(self, places: list[int]) -> None:
        self.ran += places

    def shutdown(self) -> None:
        self.ended = True


def test_one_process_runs_groups_without_spark() -> None:
    names = ["kafka", f"unit/a{WITHOUT_SPARK}", "golden/b", f"unit/c{WITHOUT_SPARK}"]
    tests = [f"test_x.py::test_it@{name}" for name in names]
    plain, other = Process(PLAIN_PROCESS), Process("gw0")
    made: Any = Scheduling.__new__(Scheduling)
    made.workqueue = OrderedDict(
        (name, {test: False}) for name, test in zip(names, tests, strict=True)
    )
    made.assigned_work, made.registered_collections = {}, {plain: tests, other: tests}
    for process in (plain, other, plain, plain, other):
        made._assign_work_unit(process)
    assert (plain.ran, plain.ended) == ([1, 3], True)
    assert (other.ran, other.ended, list(made.workqueue)) == ([0, 2], False, [])
