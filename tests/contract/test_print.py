from __future__ import annotations

from typing import Any

import pytest

from penstock.connectors.print import PrintSink
from penstock.testing.contract import SinkContract


class TestPrintSink(SinkContract):
    component = PrintSink
    payload_kind = "lines"

    @pytest.fixture
    def rows(self, capsys: pytest.CaptureFixture[str]) -> Any:
        def rows(schema: Any) -> Any:
            return self.decode(
                [line.encode() for line in capsys.readouterr().out.split("\n")[:-1]], schema
            )

        return rows
