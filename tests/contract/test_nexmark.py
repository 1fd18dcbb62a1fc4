from __future__ import annotations

from typing import Any

import pytest

from penstock.connectors.nexmark import NexmarkSource
from penstock.testing.contract import SourceContract


class TestNexmarkSource(SourceContract):
    component = NexmarkSource
    format = None
    batch_limit = {"max_records": 1}

    @pytest.fixture
    def options(self) -> dict[str, Any]:
        return {"rows": 1000, "max_records": 300, "partitions": 3, "shuffle": 50}
