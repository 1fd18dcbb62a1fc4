from __future__ import annotations

from typing import Any

import pytest

from penstock.connectors.generate import GenerateSource
from penstock.testing.contract import SourceContract


class TestGenerateSource(SourceContract):
    component = GenerateSource
    format = None
    batch_limit = {"max_records": 1}

    @pytest.fixture
    def options(self) -> dict[str, Any]:
        fields = {"id": "sequence", "at": "timestamp", "who": "name", "key": "uuid"}
        return {"fields": fields, "rows": 1000, "max_records": 300, "partitions": 3}
