"""`penstock streamling`: files of Streamling, by the command line of Streamling."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from penstock.cli.options import Settings

DIALECT = "streamling"
USER_ERROR = 2
"""The exit code of errors in files."""
DEFAULT_FILE = "./pipeline.yaml"
PipelineFile = Annotated[Path | None, Parameter(name="FILE", help="The file of the pipeline.")]
DryRun = Annotated[bool, Parameter(help="Check the file and its columns, and read no data.")]
Validate = Annotated[bool, Parameter(help="As --dry-run, and print the result as JSON.")]


def streamling(
    file: PipelineFile = None, /, *, settings: Settings = None, dry_run: DryRun = False,
    validate: Validate = False,
) -> int:  # fmt: skip
    """Run a file of Streamling, with the options of its command line.

    Without a file it is the one of the setting pipeline_definition_location, or ./pipeline.yaml.
    Options --dry-run and --validate need no secrets of the settings. Option --validate prints
    success, is_valid, errors and warnings, and exits with 0 if the file is valid. With the setting
    num_records_before_stop a run stops at the latest offsets of its start. `penstock run`, `check`,
    `test`, `explain` and `convert` read these files as well.

      penstock streamling pipeline.yaml
      penstock streamling pipeline.yaml --config production --dry-run
      penstock streamling pipeline.yaml --validate
    """
    from penstock.spec.front_end import choose, document_front_end

    choose(DIALECT, strict=False, settings=settings, secrets=not (validate or dry_run))
    setting = document_front_end(DEFAULT_FILE).setting
    path = file or Path(setting("pipeline_definition_location") or DEFAULT_FILE)
    if not (validate or dry_run):
        from penstock.cli.run import run

        stops = bool(setting("num_records_before_stop"))
        log: Literal["json"] | None = "json" if setting("log_format").lower() == "json" else None
        return run([path], dialect=DIALECT, settings=settings, until_caught_up=stops, log=log)
    return _validate(path) if validate else _check(path)


def _check(path: Path) -> int:
    from penstock.checks import check
    from penstock.cli.printing import print_warnings
    from penstock.core.error_report import format_error

    result = check([path])
    print_warnings(result.warnings)
    for error in result.errors:
        print(f"{format_error(error)}\n", file=sys.stderr)
    return result.exit_code


def _validate(path: Path) -> int:
    from penstock.checks import check
    from penstock.cli.printing import print_json
    from penstock.core.error_report import format_error

    result = check([path])
    print_json({
        "success": all(error.policy.exit_code == USER_ERROR for error in result.errors),
        "is_valid": not result.errors,
        "errors": [format_error(error) for error in result.errors],
        "warnings": [format_error(warning) for warning in result.warnings],
    })  # fmt: skip
    return result.exit_code
