"""The function in Python that `extract_json` and the like call for paths of several values."""

from __future__ import annotations

import pyarrow as pa

from penstock.plan.functions.model import Function, Parameter
from penstock.sql.datafusion.json_path import FIND_VALUES

_CODE = f"""
from penstock.engine.functions.json_paths import find_values

def {FIND_VALUES}(text, path):
    return find_values(text, path)
"""
JSON_PATH_VALUES = Function(
    FIND_VALUES,
    parameters=tuple(Parameter(name, pa.string(), nullable=False) for name in ("text", "path")),
    returns=pa.list_(pa.string()),
    code=_CODE,
    entry=FIND_VALUES,
    file=FIND_VALUES,
)
