from __future__ import annotations

from typing import Any

import pytest

from penstock.connectors.nexmark import NexmarkSource
from penstock.testing.contract import SourceContract


class TestNexmarkSource(SourceContract):
    component = NexmarkSource
    format = None
    limited = {"max_rows": 1}

    @pytest.fixture
    def options(self) -> dict[str, Any]:
        return {"rows": 1000, "max_rows": 300, "partitions": 3, "shuffle": 50}
