"""Permission of Python code in pipelines, which `penstock serve --no-python` rejects.

The variable of the environment reaches all processes of a run. The components of installed packages
are permitted.
"""

from __future__ import annotations

import os

from penstock.core.errors import PlanError
from penstock.core.location import Location
from penstock.core.permission_errors import not_permitted

VARIABLE = "PENSTOCK_NO_PYTHON"
SERVER_FUNCTIONS = "PENSTOCK_FUNCTIONS"
"""The variable with the directory of the functions that `penstock serve` keeps."""
CODE = "python-rejected"
HINT = "use SQL or another transform, or ask the operator to permit Python"


def python_permitted() -> bool:
    """Returns whether pipelines may have Python code in this process."""
    return not os.environ.get(VARIABLE)


def python_not_permitted(what: str, where: Location | None = None) -> PlanError:
    """Returns the error of Python code that is not permitted."""
    return PlanError(f"{what} is not permitted on this server", code=CODE, where=where, hint=HINT)


def require_no_packages(packages: list[str]) -> list[str]:
    """Returns Maven coordinates of jars, which are code of others. Raises PydanticCustomError."""
    if packages and not python_permitted():
        hint = "ask the operator for the jar in a permitted directory, and name it in jars"
        raise not_permitted("packages are not permitted on this server", CODE, hint)
    return packages


def require_python(what: str) -> None:
    """Raises PlanError if Python code is not permitted."""
    if not python_permitted():
        raise python_not_permitted(what)
