"""Requests of handlers and webhooks."""

from __future__ import annotations

import re

from penstock.spec.dialects.options.reading import Reading
from penstock.spec.dialects.options.trees import Tree
from penstock.spec.dialects.streamling import connections as to
from penstock.spec.dialects.streamling.nodes import Pipeline
from penstock.spec.front_end import CHOICE
from penstock.spec.tree.nodes import MappingNode, ScalarNode

REQUEST = (
    "url! = `url`", "headers:map = `headers`",
    "secret_name = a header of `headers`, by the settings `http_secret_header` and "
    "`http_secret_value`",
    "one_row_per_request:boolean = `framing`: single or array",
    "payload_version:integer = `payload_version`: 0 or 1",
)  # fmt: skip
"""The options of requests."""
_RETRY = {"backoff": "100ms", "max_backoff": "30s"}


def request(reading: Reading, pipeline: Pipeline) -> dict[str, Tree]:
    """Returns the options of requests."""
    settings = pipeline.settings
    seconds = settings.number("external_http_handler.operator_timeout_sec", 300)
    version = reading.value("payload_version", 0)
    if version not in (0, 1):
        reading.findings.error(
            f'"payload_version" of {reading.subject} expects 0 or 1, found {version}',
            reading.where("payload_version"),
        )
    return {
        "url": _template(reading.text("url")), "headers": _headers(reading, pipeline) or None,
        "framing": "single" if reading.value("one_row_per_request") is True else "array",
        "format": to.JSON, "timeout": f"{seconds}s", "retry": _RETRY,
    }  # fmt: skip


def _headers(reading: Reading, pipeline: Pipeline) -> dict[str, Tree]:
    node = reading.get("headers")
    entries = node.entries if isinstance(node, MappingNode) else ()
    headers: dict[str, Tree] = {
        entry.name: _template(entry.value.written)
        for entry in entries
        if isinstance(entry.value, ScalarNode)
    }
    secret = reading.text("secret_name")
    if not secret:
        return headers
    name = re.sub(r"[^a-z0-9]", "_", secret.lower())
    settings = pipeline.settings
    header, value = (f"http_secret_{part}.{name}" for part in ("header", "value"))
    for path in (header, value):
        if settings.find(path) is None:
            if not CHOICE.get().secrets:
                return headers
            variable = f"STREAMLING__{path.upper().replace('.', '__')}"
            reading.findings.error(
                f'the secret "{secret}" of {reading.subject} is not set',
                reading.where("secret_name"), code="unknown-secret",
                hint=f"set the environment variable {variable}",
            )  # fmt: skip
            return headers
    field = settings.text(header)
    if field.lower() in (each.lower() for each in headers):
        reading.findings.error(
            f'the header "{field}" is in headers, and the secret "{secret}" sets it too',
            reading.where("secret_name"), code="duplicate-key",
            hint="remove one of them",
        )  # fmt: skip
    headers[field] = settings.secret(value)
    return headers


def _template(text: str) -> str:
    """Returns a text in which no part is a column."""
    return re.sub(r"(?<!\$)\{|\}", lambda match: match[0] * 2, text)
