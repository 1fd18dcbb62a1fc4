"""Contract tests for connectors.

Subclass `SourceContract`, `SinkContract`, `TransformContract`, or `ReceivingContract` for a source
that is a `ReceivingSource`:

    class TestFilesSink(SinkContract):
        component = FilesSink

        @pytest.fixture
        def options(self, tmp_path):
            return {"path": str(tmp_path / "out")}

        @pytest.fixture
        def rows(self, tmp_path):
            return lambda schema: self.decode(read_lines(tmp_path / "out"), schema)

The capabilities of the component and the fixtures of the class select the tests. Other tests are
not collected. The classes of a component share the tests of the component class, classes with the
same `transport` share the tests of the client, and those with the same `transport` or `variant` the
pipelines. Shared tests run for the first collected class.

The class excuses tests with a reason: `unsupported = {"test_name": "reason"}` for tests that the
outside system makes impossible, `known_failures = {"test_name": "reason"}` for tests that do not
pass yet. Both are strict: an excused test that passes is a failure.
"""

from penstock.testing.contract.receiving import ReceivingContract
from penstock.testing.contract.sink import SinkContract
from penstock.testing.contract.source import SourceContract
from penstock.testing.contract.transform import TransformContract

__all__ = ["ReceivingContract", "SinkContract", "SourceContract", "TransformContract"]
