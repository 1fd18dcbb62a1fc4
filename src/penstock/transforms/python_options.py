"""Checks of the options of the transform `python`."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.errors import OptionError, PlanError, ValidationErrors, flatten_errors
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.requirements import check_requirement
from penstock.transforms.python_code import check_code
from penstock.transforms.python_config import PythonConfig


def option_errors(config: PythonConfig) -> Iterator[PlanError]:
    """Yields the errors of options: columns, code and missing packages."""
    yield from _schema_errors(config)
    for index, requirement in enumerate(config.dependencies):
        try:
            check_requirement(requirement)
        except PlanError as error:
            yield OptionError.of(
                "dependencies", index, message=error.message, code=error.code, hint=error.hint
            )
    if config.code is not None:
        try:
            check_code(config.code, config.function)
        except PlanError as error:
            yield error


def _schema_errors(config: PythonConfig) -> Iterator[PlanError]:
    if config.columns is not None:
        try:
            arrow_schema(config.columns)
        except (PlanError, ValidationErrors) as error:
            for inner in flatten_errors(error):
                yield OptionError.inside("schema", inner)
    elif config.per == "row" or config.state is not None:
        yield PlanError(
            f"{'per: row' if config.per == 'row' else 'state'} requires the columns of the output",
            code="missing-option",
            hint="Add schema: name STRING, ...",
        )
