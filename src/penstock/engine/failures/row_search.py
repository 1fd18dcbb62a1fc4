"""Search for the rows of a table on which frames fail, without the sinks of a query."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.utils import is_remote

from penstock.core.errors import RecordError
from penstock.engine.failures.separation import ROWS_PER_FILE
from penstock.engine.row_checks.data_errors import require_data_error
from penstock.engine.row_checks.row_checks import find_checks, number_rows


def find_failing_rows(frames: Sequence[DataFrame], input_: DataFrame) -> dict[int, RecordError]:
    """Returns the positions of the rows of `input_` on which a frame fails, and their errors.

    The frames are computed from `input_`. Rows that fail where no check finds them are left out.
    """
    if is_remote():
        return {}
    rows = number_rows(input_.coalesce(1))
    errors: dict[int, RecordError] = {}
    try:
        for check in (each for frame in frames for each in find_checks(frame, input_, rows)):
            numbers = pc.unique(check.numbers()).sort()
            for start in range(0, len(numbers), ROWS_PER_FILE):
                part = numbers.slice(start, ROWS_PER_FILE)
                for number, error in check.errors(part[0].as_py(), part[-1].as_py()):
                    errors.setdefault(number, error)
    except (Py4JError, PySparkException) as error:
        require_data_error(error)
        return {}
    return errors
