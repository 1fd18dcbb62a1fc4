"""Requests that schemathesis makes from the OpenAPI description: none is an error of the server."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings

from penstock.server.api.security import HEADERS
from server_console import Console

pytestmark = pytest.mark.slow
EXAMPLES = 3
"""Requests for each operation."""
STREAMS = ("/events", "/tap")
"""The paths of answers without an end."""


@pytest.mark.usefixtures("static_checks")
def test_no_request_is_an_error_of_the_server(console: Console) -> None:
    app: Any = console.client.app
    described = console.get("openapi.json")
    described["paths"] = {
        path: operations for path, operations in described["paths"].items()
        if not path.endswith(STREAMS)
    }  # fmt: skip
    schema = schemathesis.openapi.from_dict(described)
    found: dict[str, set[int]] = {}
    for result in schema.get_all_operations():
        operation: Any = result.ok()  # type: ignore[union-attr]

        def call(case: Any) -> None:
            label = f"{case.method} {case.path}"
            if "id" in (case.path_parameters or {}) and len(case.path_parameters["id"]) % 2:
                case.path_parameters["id"] = console.id()
            arguments = case.as_transport_kwargs(base_url="http://localhost")
            if arguments["url"].endswith("/logout"):
                return
            arguments["headers"] = {**console.client.headers, **dict(arguments["headers"] or {})}
            arguments.pop("cookies", None)
            answer = console.client.request(**arguments)
            assert answer.status_code < 500, f"{label}: {answer.status_code} {answer.text}"
            if answer.status_code >= 400:
                errors = answer.json()["errors"]
                assert errors and all({"code", "message"} <= each.keys() for each in errors), label
            missing = [name for name in HEADERS if name not in answer.headers]
            assert not missing, f"{label}: {missing}"
            found.setdefault(label, set()).add(answer.status_code)

        limits = settings(
            max_examples=EXAMPLES, database=None, deadline=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        seed(1)(limits(given(case=operation.as_strategy())(call)))()
    assert len(found) > 25, found
    assert any(200 in statuses for statuses in found.values())
    assert app.state.parts.accounts.users()
