"""Creation of components as the planner does, and the fixtures of their contracts."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pyarrow as pa
import pytest

from penstock.sdk import Capability, Component, Context, Format, Transient, registry
from penstock.testing.contract.applies import optional_fixture, provides, skip_reason
from penstock.testing.contract.pipeline import Pipeline
from penstock.testing.contract.rows import Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOPPED_SERVER_TIMEOUT = 20
NO_HINT = "expected a hint, found none"


class ComponentHarness:
    """Base class of the contracts: creates components. A subclass sets `component`."""

    component: ClassVar[type[Component[Any]]]
    """The class under test."""

    format: str | None = "json"
    """The type of the format in the tests."""

    unsupported: ClassVar[dict[str, str]] = {}
    """Tests that the outside system makes impossible, with the reason."""

    known_failures: ClassVar[dict[str, str]] = {}
    """Tests that do not pass yet, with the reason."""

    transport: ClassVar[str] = ""
    """The client library and transport, where the options choose between several.

    The classes of a component with the same `transport` share the tests of the client: an
    unavailable server, authentication, back-pressure, and pipelines run by Spark. Classes with the
    same `variant` also share the pipelines.
    """

    implementation: ClassVar[type[Component[Any]] | None] = None
    """The class of another type with the same client. Its contract has the tests of the client."""

    payload_kind: ClassVar[Literal["bytes", "text", "lines", "rows"] | None] = None
    """The payloads that the transport carries.

    `bytes`: any payload. `text`: any UTF-8. `lines`: non-empty UTF-8 without line breaks. `rows`:
    only payloads of the format. None: `bytes` for a component that declares BYTES, else `rows`.
    """

    max_payload_size: ClassVar[int] = 2**20
    """The size in bytes of the largest payload in the tests, up to 1 MiB."""

    variant: ClassVar[str] = ""
    """The element of the component's `variants` that `options` select."""

    wrong_credentials: ClassVar[dict[str, Any]] = {}
    """Options with which authentication fails. Nested options are merged."""

    capabilities: frozenset[Capability]
    """The capabilities of the component with the options of the test."""

    @pytest.fixture
    def options(self) -> dict[str, Any]:
        """Returns options to reach the system under test. A test may change the dict."""
        return {}

    @optional_fixture
    @pytest.fixture
    def server(self) -> Any:
        """Returns the server, with methods `stop`, `start`, `kill`, `pause` and `resume`."""
        pytest.skip("there is no server")

    @pytest.fixture
    def pipeline(self, tmp_path: Path, penstock_spark: SparkSession) -> Callable[..., Pipeline]:
        """Returns a function that creates a pipeline, as in `pipeline(fails_on=3)`."""
        return partial(Pipeline, tmp_path, penstock_spark)

    @pytest.fixture(autouse=True)
    def _mark_excused(self, request: pytest.FixtureRequest) -> None:
        name = request.node.originalname
        for excuses in (self.unsupported, self.known_failures):
            if name in excuses:
                mark = pytest.mark.xfail(reason=excuses[name], strict=True)
                request.node.add_marker(mark)

    @pytest.fixture(autouse=True)
    def _check_applicability(self, request: pytest.FixtureRequest, options: dict[str, Any]) -> None:
        self.capabilities = self.create_component(options).capabilities
        if reason := skip_reason(request.function, self):
            pytest.skip(reason)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        excused = (*cls.unsupported, *cls.known_failures)
        unknown = [name for name in excused if not hasattr(cls, name)]
        if unknown:
            raise TypeError(f"{cls.__name__} excuses unknown tests: {', '.join(unknown)}")

    @property
    def effective_payload_kind(self) -> str:
        """The kind of payloads that the transport carries, with the default applied."""
        default = "bytes" if Capability.BYTES in self.capabilities else "rows"
        return self.payload_kind or default

    @property
    def checks_killed_server(self) -> bool:
        """Whether a test that kills the server also checks the component without the server."""
        return False

    def assert_check_is_transient(self, options: dict[str, Any]) -> None:
        """Checks that `check` fails in time without a server, with a Transient error and a hint."""
        started = time.monotonic()
        with pytest.raises(Transient) as caught:
            self.create_component(options).check()
        assert time.monotonic() - started < STOPPED_SERVER_TIMEOUT
        assert caught.value.hint, NO_HINT

    def applies_unexcused(self, test: str, fixture: str) -> bool:
        """Returns whether a class with a fixture runs a test, and the test may not fail."""
        excused = test in self.unsupported or test in self.known_failures
        return provides(self, fixture) and not excused

    def create_node(self, options: dict[str, Any]) -> dict[str, Any]:
        """Returns the component as a node of a pipeline file."""
        (type_,) = [
            name for kind in registry.KINDS for name in registry.types(kind)
            if registry.find(kind, name) is self.component
        ]  # fmt: skip
        node = {"type": type_, **options}
        return node if self.format is None else {**node, "format": self.format}

    def create_component(self, options: dict[str, Any], state: Path | None = None) -> Any:
        """Creates the component as the planner does, ready for pickling."""
        config = self.component.config_type.model_validate(options)
        component: Any = self.component.create(config, Context("contract", "node", state))
        if self.format is not None:
            component.format = self.create_format()
        return component

    def create_format(self) -> Format[Any]:
        """Creates the format of the tests."""
        format_type = registry.find("format", self.format or "json")
        format_ = format_type(format_type.config_type.model_validate({}))
        assert isinstance(format_, Format)
        return format_

    def encode(self, rows: list[Row], schema: pa.Schema) -> list[bytes]:
        """Encodes rows as payloads of the format."""
        encoded = self.create_format().encode(pa.RecordBatch.from_pylist(rows, schema=schema))
        assert not encoded.failures, f"expected no failures, found {encoded.failures}"
        return list(encoded.payloads.to_pylist())

    def decode(self, payloads: list[bytes], schema: pa.Schema) -> list[Row]:
        """Decodes payloads of the format into rows."""
        decoded = self.create_format().decode(pa.array(payloads, pa.binary()), schema)
        assert not decoded.failures, f"expected no failures, found {decoded.failures}"
        return list(decoded.rows.to_pylist())
