"""The contract of all components: options, secrets, imports, documentation, unavailable servers."""

from __future__ import annotations

import pickle
import re
import textwrap
import time
from typing import Any

import pytest
from pydantic import ValidationError
from ruamel.yaml import YAML

from penstock.core.secret import Secret
from penstock.core.text import nearest
from penstock.sdk import Permanent, Sink, Source, Transient, registry
from penstock.sdk.guarantees import delivery_guarantee, guarantees
from penstock.testing.contract.applies import once_per_component, once_per_transport, run_if
from penstock.testing.contract.component_harness import NO_HINT, ComponentHarness
from penstock.testing.contract.config_models import (
    annotated_classes,
    config_fields,
    merge_options,
)
from penstock.testing.contract.lazy_imports import imported_packages

NODE_KEYS = frozenset(
    [
        "type", "from", "format", "schema", "watermark", "primary_key", "on_error", "metadata",
        "mode", "batch", "rate_limit", "invalid_utf8",
    ]
)  # fmt: skip
PAUSED_SERVER_TIMEOUT = 60
_SECRET_NAME = re.compile(
    r"(password|passphrase|secret|token|api_?key|private_?key|credential)(?!.*_url$)"
)
_requires_guarantees = run_if(
    lambda contract: issubclass(contract.component, Source | Sink),
    lambda _: "only sources and sinks have guarantees",
)


class ComponentContract(ComponentHarness):
    """The contract of all components. A subclass sets `component`."""

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

    @_requires_guarantees
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
            assert caught.value.hint, NO_HINT
        finally:
            server.resume()
        self.create_component(options).check()

    @once_per_transport
    @run_if(lambda contract: bool(contract.wrong_credentials), lambda _: "no wrong_credentials")
    def test_wrong_credentials_fail_permanently(self, options: dict[str, Any], server: Any) -> None:
        with pytest.raises(Permanent) as caught:
            self.create_component(merge_options(options, self.wrong_credentials)).check()
        assert caught.value.hint, NO_HINT

    def test_component_is_picklable(self, options: dict[str, Any]) -> None:
        copy = pickle.loads(pickle.dumps(self.create_component(options)))
        assert copy.config == self.create_component(options).config

    def _is_registered_as(self, type_: str) -> bool:
        return any(
            type_ in registry.types(kind) and registry.find(kind, type_) is self.component
            for kind in registry.KINDS
        )
