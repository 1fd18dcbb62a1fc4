"""ID of a run that the program which starts it has chosen."""

from __future__ import annotations

import os

RUN_ID_VARIABLE = "PENSTOCK_RUN_ID"
"""The environment variable with the ID of the run."""


def given_run_id() -> str | None:
    """Returns the ID of the run of this process; None if no program has chosen one."""
    return os.environ.get(RUN_ID_VARIABLE) or None
