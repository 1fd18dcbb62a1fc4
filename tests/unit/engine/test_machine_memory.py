"""Memory of a machine or a container, and the heap and state store chosen by it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from penstock.engine.spark_session.memory import GIB, MIB, Memory, choose_heap, choose_resources
from penstock.spec.runtime_models import Runtime


class Machine:
    """A directory with the files of the kernel."""

    def __init__(self, root: Path, total: int = 16 * GIB, available: int = 12 * GIB) -> None:
        self.root = root
        lines = f"MemTotal: {total // 1024} kB\nMemAvailable: {available // 1024} kB\n"
        self.write("proc/meminfo", lines)

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def read(self) -> Memory:
        memory = Memory.read(self.root)
        assert memory is not None
        return memory


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_machine_without_limits(machine: Machine) -> None:
    assert machine.read() == Memory(16 * GIB, 12 * GIB)


def test_limits_of_a_control_group_and_of_those_above(machine: Machine) -> None:
    machine.write("proc/self/cgroup", "0::/kube/pod\n")
    machine.write("sys/fs/cgroup/kube/pod/memory.max", "max\n")
    machine.write("sys/fs/cgroup/kube/pod/memory.current", "1\n")
    machine.write("sys/fs/cgroup/kube/memory.max", f"{4 * GIB}\n")
    machine.write("sys/fs/cgroup/kube/memory.current", f"{3 * GIB}\n")
    machine.write("sys/fs/cgroup/kube/memory.stat", f"anon 5\ninactive_file {2 * GIB}\n")
    assert machine.read() == Memory(4 * GIB, 3 * GIB)


def test_the_limit_of_a_container_with_a_namespace_of_its_own(machine: Machine) -> None:
    machine.write("proc/self/cgroup", "0::/\n")
    machine.write("sys/fs/cgroup/memory.max", f"{2 * GIB}\n")
    machine.write("sys/fs/cgroup/memory.current", f"{GIB}\n")
    assert machine.read() == Memory(2 * GIB, GIB)


def test_the_limit_of_control_groups_version_1(machine: Machine) -> None:
    machine.write("proc/self/cgroup", "7:cpu:/x\n5:memory:/docker\n")
    machine.write("sys/fs/cgroup/memory/docker/memory.limit_in_bytes", f"{6 * GIB}\n")
    machine.write("sys/fs/cgroup/memory/docker/memory.usage_in_bytes", f"{GIB}\n")
    assert machine.read() == Memory(6 * GIB, 5 * GIB)


def test_unused_heaps_of_other_pipelines_are_not_available(machine: Machine) -> None:
    spark = ["java", "-Xmx3072m", "org.apache.spark.deploy.SparkSubmit", "pyspark-shell"]
    machine.write("proc/17/cmdline", "\0".join(spark))
    machine.write("proc/17/statm", f"999999999 {GIB // os.sysconf('SC_PAGE_SIZE')} 0")
    machine.write("proc/18/cmdline", "\0".join(["java", "-Xmx8g", "org.other.Server"]))
    machine.write("proc/18/statm", "1 1 1")
    assert machine.read() == Memory(16 * GIB, 10 * GIB)


@pytest.mark.parametrize(
    ("total", "available", "cores", "heap"),
    [
        (24, 22, 2, 3 * GIB),
        (24, 4, 2, 2 * GIB),
        (8, 7, 4, 2 * GIB),
        (4, 3, 2, GIB),
        (2, 2, 2, GIB),
        (1, 1, 1, 512 * MIB),
        (1, 0, 1, 512 * MIB),
        (64, 60, 8, 8 * GIB),
        (512, 500, 64, 16 * GIB),
    ],
)
def test_the_heap_leaves_room(total: int, available: int, cores: int, heap: int) -> None:
    assert choose_heap(total * GIB, available * GIB, cores) == heap


def test_the_state_store_follows_the_heap() -> None:
    large, small = Memory(16 * GIB, GIB), Memory(GIB, GIB)
    assert choose_resources(Runtime(), 2, large).state_store == "memory"
    assert choose_resources(Runtime(), 2, small).state_store == "rocksdb"
    assert choose_resources(Runtime(memory="600m"), 2, large).state_store == "rocksdb"
    chosen = choose_resources(Runtime(state_store="memory"), 2, small)
    assert chosen.state_store == "memory"


def test_a_heap_of_the_pipeline_file_is_kept() -> None:
    chosen = choose_resources(Runtime(memory="1500 MB"), 2, Memory(64 * GIB, 64 * GIB))
    assert (chosen.heap, chosen.memory) == (1_500_000_000, None)
    spark = {"spark.driver.memory": "5g"}
    assert choose_resources(Runtime(spark=spark), 2, Memory(GIB, GIB)).heap == 5 * GIB


def test_an_unknown_memory_has_a_heap_of_1_gib(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Memory, "read", classmethod(lambda cls: None))
    chosen = choose_resources(Runtime(), 8)
    assert (chosen.heap, chosen.state_store) == (GIB, "memory")


@pytest.mark.parametrize("memory", ["lots", "100 MB", "1", "-1g", ""])
def test_an_impossible_heap_is_an_error(memory: str) -> None:
    with pytest.raises(ValidationError, match="expected auto, or"):
        Runtime(memory=memory)
