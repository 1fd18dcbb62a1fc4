"""What every connector must pass, driven by hand: subclass `SourceContract`, `SinkContract`, and
`ReceivingContract` for sources of systems that push.

    class TestFilesSink(SinkContract):
        component = FilesSink

        @pytest.fixture
        def options(self, tmp_path):
            return {"path": str(tmp_path / "out")}

        @pytest.fixture
        def rows(self, tmp_path):
            return lambda schema: self.decoded(read_lines(tmp_path / "out"), schema)

The component's capabilities decide which tests apply. What a connector cannot do is said on the
class: `never = {"test_name": "why it cannot be"}`, `notyet = {"test_name": "why it is not yet"}`.
Both are strict: a test that is excused and passes fails.
"""

from penstock.testing.contract.receiving import ReceivingContract
from penstock.testing.contract.sink import SinkContract
from penstock.testing.contract.source import SourceContract

__all__ = ["ReceivingContract", "SinkContract", "SourceContract"]
