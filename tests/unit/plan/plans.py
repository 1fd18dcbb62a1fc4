"""Plans of pipelines that tests write down as data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from penstock import app
from penstock.plan.model import Plan

ORDERS = {
    "type": "memory",
    "rows": [],
    "schema": "id LONG, price DOUBLE, at TIMESTAMP",
    "watermark": {"column": "at", "delay": "1 minute"},
}
MORE = {**ORDERS, "rows": [{"id": 7}]}
NAMES = {"type": "memory", "static": True, "rows": [{"id": 1, "name": "a"}]}
HOURLY = "SELECT window.start AS hour, count(*) AS n FROM {} GROUP BY window(at, '1 hour')"


def sql(text: str, **options: Any) -> dict[str, Any]:
    return {"type": "sql", "sql": text, **options}


def memory(above: str) -> dict[str, Any]:
    return {"type": "memory", "from": above}


def upserts(above: str) -> dict[str, Any]:
    """A sink that can replace rows."""
    kafka = {"type": "kafka", "brokers": "localhost:1", "topic": "rows"}
    return {**kafka, "from": above, "primary_key": ["n"]}


def changed(document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with values set at dotted paths; None removes one."""
    copy: dict[str, Any] = deepcopy(dict(document))
    for path, value in changes.items():
        *route, last = path.split(".")
        inner = copy
        for name in route:
            inner = inner.setdefault(name, {})
        if value is None:
            del inner[last]
        else:
            inner[last] = value
    return copy


def planned(directory: Path, document: Mapping[str, Any], **environment: str) -> Plan:
    """The plan of a document, whose file is in the directory."""
    path = directory / "pipeline.yaml"
    path.write_text(json.dumps({"name": "shop", **document}))
    return app.plan(path, env=environment)
