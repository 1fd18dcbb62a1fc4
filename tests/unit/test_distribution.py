"""The order of the tests in a whole run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from distribution import SERVERS, module_places


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
