from __future__ import annotations

from typing import Any

import pytest

from penstock.connectors import memory
from penstock.testing.contract import SinkContract, SourceContract


class TestMemorySourcePayloads(SourceContract):
    component = memory.MemorySource
    batch_limit = {"batches": 3}

    @pytest.fixture
    def options(self) -> dict[str, Any]:
        return {"payloads": []}

    @pytest.fixture
    def put(self, options: dict[str, Any]) -> Any:
        def put(rows: Any, schema: Any) -> None:
            options["payloads"] += [each.decode() for each in self.encode(rows, schema)]

        return put


class TestMemorySource(TestMemorySourcePayloads):
    @pytest.fixture
    def options(self) -> dict[str, Any]:
        return {"rows": []}

    @pytest.fixture
    def put(self, options: dict[str, Any]) -> Any:
        return lambda rows, schema: options["rows"].extend(rows)


class TestMemorySink(SinkContract):
    component = memory.MemorySink

    @pytest.fixture
    def options(self) -> Any:
        memory.clear()
        yield {"name": "kept"}
        memory.clear()

    @pytest.fixture
    def rows(self) -> Any:
        return lambda schema: memory.tables["kept"].to_pylist()

    @pytest.fixture
    def table(self, rows: Any) -> Any:
        return rows
