"""The contract of all components: options, secrets, imports, documentation, unavailable servers."""

from __future__ import annotations

import pickle
import re
import textwrap
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pyarrow as pa
import pytest
from pydantic import ValidationError
from ruamel.yaml import YAML

from penstock.core.secret import Secret
from penstock.core.text import nearest
from penstock.sdk import Capability, Component, Context, Format, Permanent, Transient, registry
from penstock.sdk.guarantees import delivery_guarantee, guarantees
from penstock.testing.contract.applies import (
    once_per_component,
    once_per_transport,
    optional_fixture,
    provides,
    run_if,
    skip_reason,
)
from penstock.testing.contract.config_models import (
    annotated_classes,
    config_fields,
    merge_options,
)
from penstock.testing.contract.lazy_imports import imported_packages
from penstock.testing.contract.pipeline import Pipeline
from penstock.testing.contract.rows import Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NODE_KEYS = frozenset(
    [
        "type", "from", "format", "schema", "watermark", "primary_key", "on_error", "metadata",
        "mode", "batch", "rate_limit", "invalid_utf8",
    ]
)  # fmt: skip
STOPPED_SERVER_TIMEOUT = 20
PAUSED_SERVER_TIMEOUT = 60
_SECRET_NAME = re.compile(
    r"(password|passphrase|secret|token|api_?key|private_?key|credential)(?!.*_url$)"
)
_NO_HINT = "expected a hint, found none"


class ComponentContract:
    """Base class of the contracts. A subclass sets `component`."""

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
    unavailable server, authentication, back-pressure, and pipelines run by Spark.
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
        assert caught.value.hint, _NO_HINT

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

    @once_per_component
    def test_every_option_is_documented(self) -> None:
        undocumented = [
            str(field)
            for field in config_fields(self.component.config_type)
            if not (field.info.description or "").strip()
        ]
        assert not undocumented, f"expected docstrings of {', '.join(undocumented)}, found none"

    def test_unknown_option_suggests_nearest_name(self, options: dict[str, Any]) -> None:
        known = list(self.component.config_type.model_fields)
        unknown = f"{known[0]}x" if known else "anything"
        with pytest.raises(ValidationError) as caught:
            self.component.config_type.model_validate({**options, unknown: 1})
        rejected = [
            error["loc"] for error in caught.value.errors() if error["type"] == "extra_forbidden"
        ]
        assert rejected == [(unknown,)]
        assert nearest(unknown, known) == (known[0] if known else None)

    def test_secrets_are_masked(self, options: dict[str, Any]) -> None:
        unmasked = [
            str(field)
            for field in config_fields(self.component.config_type)
            if _SECRET_NAME.search(field.name)
            and Secret not in annotated_classes(field.info.annotation)
        ]
        assert not unmasked, f"expected the type Secret of {', '.join(unmasked)}, found another"
        config = self.component.config_type.model_validate(options)
        for value in config.__dict__.values():
            if isinstance(value, Secret):
                printed = f"{config!r} {config} {config.model_dump()} {config.model_dump_json()}"
                assert value.reveal() not in printed

    @once_per_component
    def test_client_library_is_imported_lazily(self) -> None:
        packages = imported_packages(self.component.__module__)
        assert not packages, f"expected imports inside functions, found imports of {packages}"

    @once_per_component
    def test_docstring_describes_component(self) -> None:
        text = " ".join((self.component.__doc__ or "").split())
        length = len(text.split("```")[0])
        assert length > 80, f"expected more than 80 characters before an example, found {length}"

    def test_declared_guarantees(self, options: dict[str, Any]) -> None:
        """Checks that the guarantees with the options of the test are those of the variant."""
        declared = delivery_guarantee(self.create_component(options), self.variant)
        assert declared.parallelism, "expected a unit of parallelism, found none"
        assert declared.acknowledges != "", (
            "expected the moment of acknowledgement or None, found an empty text"
        )
        assert declared in guarantees(self.component), (
            f"expected the guarantees of the variant {self.variant!r}, found {declared}"
        )

    @once_per_component
    def test_docstring_example_is_valid(self) -> None:
        examples = re.findall(r"```yaml\n(.*?)```", self.component.__doc__ or "", re.DOTALL)
        assert examples, "expected an example in YAML in the docstring, found none"
        for example in examples:
            node = YAML(typ="safe").load(textwrap.dedent(example))
            assert self._is_registered_as(node["type"]), (
                f"expected the type of {self.component.__name__}, found {node['type']}"
            )
            options = {key: value for key, value in node.items() if key not in NODE_KEYS}
            self.component.config_type.model_validate(options)

    @once_per_transport
    @run_if(
        lambda contract: not contract.checks_killed_server,
        lambda _: "another test checks the same of a killed server",
    )
    def test_check_of_stopped_server_is_transient(
        self, options: dict[str, Any], server: Any
    ) -> None:
        server.stop()
        try:
            self.assert_check_is_transient(options)
        finally:
            server.start()
        self.create_component(options).check()

    @once_per_transport
    def test_check_of_paused_server_times_out(self, options: dict[str, Any], server: Any) -> None:
        server.pause()
        try:
            started = time.monotonic()
            with pytest.raises(Transient) as caught:
                self.create_component(options).check()
            assert time.monotonic() - started < PAUSED_SERVER_TIMEOUT
            assert caught.value.hint, _NO_HINT
        finally:
            server.resume()
        self.create_component(options).check()

    @once_per_transport
    @run_if(lambda contract: bool(contract.wrong_credentials), lambda _: "no wrong_credentials")
    def test_wrong_credentials_fail_permanently(self, options: dict[str, Any], server: Any) -> None:
        with pytest.raises(Permanent) as caught:
            self.create_component(merge_options(options, self.wrong_credentials)).check()
        assert caught.value.hint, _NO_HINT

    def test_component_is_picklable(self, options: dict[str, Any]) -> None:
        copy = pickle.loads(pickle.dumps(self.create_component(options)))
        assert copy.config == self.create_component(options).config

    def _is_registered_as(self, type_: str) -> bool:
        return any(
            type_ in registry.types(kind) and registry.find(kind, type_) is self.component
            for kind in registry.KINDS
        )
