"""What holds for sources and sinks alike: options, secrets, imports, documentation."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import pyarrow as pa
import pytest
from pydantic import ValidationError
from ruamel.yaml import YAML

from penstock.core.secret import Secret
from penstock.core.text import nearest
from penstock.sdk import (
    Capability,
    Component,
    Config,
    Context,
    Format,
    Permanent,
    Transient,
    registry,
)
from penstock.sdk.promise import promise, promises
from penstock.testing.contract.applies import absent, once, only, skipped
from penstock.testing.contract.pipeline import Pipeline
from penstock.testing.contract.rows import Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NODE_KEYS = frozenset(
    [
        "type",
        "from",
        "format",
        "schema",
        "watermark",
        "primary_key",
        "on_error",
        "metadata",
        "mode",
        "batch",
        "rate_limit",
    ]
)
SECONDS_TO_NOTICE = 20
SECONDS_TO_GIVE_UP = 60
_SECRET_NAME = re.compile(
    r"(password|passphrase|secret|token|api_?key|private_?key|credential)(?!.*_url$)"
)
_BASE = (
    "penstock.sdk, pyarrow.compute, pyarrow.fs, numpy, rich.console, structlog, arro3.io, fastavro"
)
_IMPORTS = f"""
import sys
import {_BASE}
before = set(sys.modules)
import {{module}}
new = {{{{name.partition(".")[0] for name in set(sys.modules) - before}}}}
known = {{{{name.partition(".")[0] for name in before}}}} | set(sys.stdlib_module_names)
known.add("{{module}}".partition(".")[0])
print(" ".join(sorted(name for name in new - known if not name.startswith("_"))))
"""


@cache
def _imported_by(module: str) -> list[str]:
    """The packages that a connector's module brings into a process that has Penstock's own."""
    code = _IMPORTS.format(module=module)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


class ComponentContract:
    """Base of the contracts."""

    component: ClassVar[type[Component[Any]]]
    """The class under test."""
    format: ClassVar[str | None] = "json"
    """The type of format that the tests use with it."""
    never: ClassVar[dict[str, str]] = {}
    """Tests that the outside system makes impossible, with the reason."""
    notyet: ClassVar[dict[str, str]] = {}
    """Tests that do not pass yet, with the reason."""

    whole: ClassVar[bool] = False
    """Whether a class that varies another one has all its tests, also those that are done once."""

    variant: ClassVar[str] = ""
    """The one of the component's `variants` that `options` choose, as it is written there."""

    capabilities: frozenset[Capability]
    """What the component can do as the options configure it."""

    @pytest.fixture
    def options(self) -> dict[str, Any]:
        """Options that reach the system under test; a test may change the dict."""
        return {}

    @pytest.fixture(autouse=True)
    def _excused(self, request: pytest.FixtureRequest) -> None:
        name = request.node.originalname
        for excuses in (self.never, self.notyet):
            if name in excuses:
                mark = pytest.mark.xfail(reason=excuses[name], strict=True)
                request.node.add_marker(mark)

    @pytest.fixture(autouse=True)
    def _applies(self, request: pytest.FixtureRequest, options: dict[str, Any]) -> None:
        self.capabilities = self.built(options).capabilities
        if reason := skipped(request.function, self):
            pytest.skip(reason)

    @pytest.fixture
    @absent
    def server(self) -> Any:
        """The server behind the system: it can `stop`, `start`, `kill`, `pause` and `resume`."""
        pytest.skip("there is no server")

    wrong_secret: ClassVar[dict[str, Any]] = {}
    """Options that the server refuses: a wrong password."""

    def node(self, options: dict[str, Any]) -> dict[str, Any]:
        """The component as a pipeline file has it."""
        (name,) = [
            name for kind in registry.KINDS for name in registry.types(kind)
            if registry.find(kind, name) is self.component
        ]  # fmt: skip
        given = {"type": name, **options}
        return given if self.format is None else {**given, "format": self.format}

    @pytest.fixture
    def pipeline(self, tmp_path: Path, penstock_spark: SparkSession) -> Callable[..., Pipeline]:
        """`pipeline(fails_on=3)` is one to run with a node of the component."""
        return partial(Pipeline, tmp_path, penstock_spark)

    def built(self, options: dict[str, Any], state: Path | None = None) -> Any:
        """The component as the planner makes it, ready for pickling."""
        config = self.component.config_type.model_validate(options)
        built: Any = self.component.of(config, Context("contract", "node", state))
        if self.format is not None:
            built.format = self.formatted()
        return built

    def formatted(self) -> Format[Any]:
        """The format of these tests."""
        found = registry.find("format", self.format or "json")
        formatted = found(found.config_type.model_validate({}))
        assert isinstance(formatted, Format)
        return formatted

    def encoded(self, rows: list[Row], schema: pa.Schema) -> list[bytes]:
        """Rows as payloads."""
        encoded = self.formatted().encode(pa.RecordBatch.from_pylist(rows, schema=schema))
        assert not encoded.failures, encoded.failures
        return list(encoded.payloads.to_pylist())

    def decoded(self, payloads: list[bytes], schema: pa.Schema) -> list[Row]:
        """Payloads as rows."""
        decoded = self.formatted().decode(pa.array(payloads, pa.binary()), schema)
        assert not decoded.failures, decoded.failures
        return list(decoded.rows.to_pylist())

    def test_every_excuse_names_a_test(self) -> None:
        unknown = [name for name in (*self.never, *self.notyet) if not hasattr(self, name)]
        assert not unknown, f"no such tests: {unknown}"

    @once
    def test_every_option_is_documented(self) -> None:
        bare = [
            f"{model.__name__}.{name}"
            for model in _models(self.component.config_type)
            for name, field in model.model_fields.items()
            if not (field.description or "").strip()
        ]
        assert not bare, f"a docstring is missing below {', '.join(bare)}"

    def test_an_unknown_option_is_refused_with_the_nearest_name(
        self, options: dict[str, Any]
    ) -> None:
        known = list(self.component.config_type.model_fields)
        wrong = f"{known[0]}x" if known else "anything"
        with pytest.raises(ValidationError) as caught:
            self.component.config_type.model_validate({**options, wrong: 1})
        refused = [
            each["loc"] for each in caught.value.errors() if each["type"] == "extra_forbidden"
        ]
        assert refused == [(wrong,)]
        assert nearest(wrong, known) == (known[0] if known else None)

    def test_secrets_are_never_printed(self, options: dict[str, Any]) -> None:
        plain = [
            f"{model.__name__}.{name}"
            for model in _models(self.component.config_type)
            for name, field in model.model_fields.items()
            if _SECRET_NAME.search(name) and Secret not in _mentioned(field.annotation)
        ]
        assert not plain, f"{', '.join(plain)} should be a Secret"
        config = self.component.config_type.model_validate(options)
        for value in config.__dict__.values():
            if isinstance(value, Secret):
                shown = f"{config!r} {config} {config.model_dump()} {config.model_dump_json()}"
                assert value.reveal() not in shown

    @once
    def test_importing_it_imports_no_client(self) -> None:
        assert not _imported_by(self.component.__module__), "import these where they are used"

    @once
    def test_the_docstring_says_what_a_user_asks(self) -> None:
        text = " ".join((self.component.__doc__ or "").split())
        assert len(text.split("```")[0]) > 80, "what is it for, and what may surprise?"

    def test_it_says_what_it_promises(self, options: dict[str, Any]) -> None:
        """For the options of the contract the same as for the variant that the class names."""
        found = promise(self.built(options), self.variant)
        assert found.parallelism, "what is the unit of parallelism?"
        assert found.acknowledges != "", "when is the outside told, or None: nobody is"
        assert found in promises(self.component), "`variant` is one of the component's `variants`"

    @once
    def test_the_example_is_valid(self) -> None:
        examples = re.findall(r"```yaml\n(.*?)```", self.component.__doc__ or "", re.DOTALL)
        assert examples, "the docstring has no yaml example"
        for example in examples:
            node = YAML(typ="safe").load(textwrap.dedent(example))
            assert self._is_type(node["type"]), f"{node['type']} is something else"
            given = {key: value for key, value in node.items() if key not in NODE_KEYS}
            self.component.config_type.model_validate(given)

    @once
    def test_a_server_that_is_down_is_worth_another_try(
        self, options: dict[str, Any], server: Any
    ) -> None:
        server.stop()
        try:
            started = time.monotonic()
            with pytest.raises(Transient) as caught:
                self.built(options).check()
            assert time.monotonic() - started < SECONDS_TO_NOTICE
            assert caught.value.hint, "what should the user look at?"
        finally:
            server.start()
        self.built(options).check()

    @once
    def test_a_server_that_does_not_answer_is_given_up(
        self, options: dict[str, Any], server: Any
    ) -> None:
        server.pause()
        try:
            started = time.monotonic()
            with pytest.raises(Transient) as caught:
                self.built(options).check()
            assert time.monotonic() - started < SECONDS_TO_GIVE_UP
            assert caught.value.hint, "what should the user look at?"
        finally:
            server.resume()
        self.built(options).check()

    @once
    @only(lambda case: bool(case.wrong_secret), lambda _: "there is no password")
    def test_a_wrong_password_is_refused(self, options: dict[str, Any], server: Any) -> None:
        with pytest.raises(Permanent) as caught:
            self.built({**options, **self.wrong_secret}).check()
        assert caught.value.hint, "what should the user look at?"

    def test_it_can_be_sent_to_a_task(self, options: dict[str, Any]) -> None:
        copy = pickle.loads(pickle.dumps(self.built(options)))
        assert copy.config == self.built(options).config

    def _is_type(self, name: str) -> bool:
        return any(
            name in registry.types(kind) and registry.find(kind, name) is self.component
            for kind in registry.KINDS
        )


def _models(model: type[Config], seen: set[type] | None = None) -> Iterator[type[Config]]:
    """The model and those within it."""
    seen = set() if seen is None else seen
    if model in seen:
        return
    seen.add(model)
    yield model
    for field in model.model_fields.values():
        for kind in _mentioned(field.annotation):
            if isinstance(kind, type) and issubclass(kind, Config):
                yield from _models(kind, seen)


def _mentioned(annotation: Any) -> set[Any]:
    """All classes that a type annotation mentions."""
    found = {annotation} if isinstance(annotation, type) else set()
    for part in get_args(annotation):
        found |= _mentioned(part)
    return found
