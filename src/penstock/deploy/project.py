"""Project of a pipeline: its files, the files that they read, its variables and its secrets."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock import app
from penstock.core.errors import PenstockError, PlanError, UserError, raise_all
from penstock.core.files.imported_files import module_files, with_imports
from penstock.deploy.literal_secrets import check_literal_secrets
from penstock.deploy.local_data import local_data_warnings
from penstock.deploy.values import Value, texts
from penstock.deploy.variables import RecordedVariables
from penstock.plan.model import Plan
from penstock.plan.state_rules import is_local
from penstock.runtime.state.pipeline import STANDARD_INPUT
from penstock.spec.front_end import language_of
from penstock.spec.preprocessing import preprocessor_modules
from penstock.spec.source_map import Route, SourceMap
from penstock.transforms.python_code import module_path
from penstock.transforms.steps.config import StepsConfig
from penstock.transforms.steps.paths import locate

LANGUAGES = ("yaml", "sql")
SECRET_OPTIONS = frozenset({"key", "key_file", "creds", "service_account"})
"""The options whose file is a secret as a whole."""
SECRET_SUFFIXES = frozenset({".key", ".p12", ".pfx", ".jks", ".keytab", ".creds"})
_PRIVATE_KEY = b"PRIVATE KEY-----"
_LOCAL, _CLUSTER = "local[1]", "k8s://cluster"
"""A master in place of one of a cluster, and in place of a local one."""
_DATA_OPTION = "path"
"""The option of connectors with the place of the rows themselves."""
_DIRECTORY_OPTION = "include"
_SECTIONS_WITH_PATHS = (
    "sources", "transforms", "sinks", "connections", "side_outputs", "dead_letter",
    "function_files", "plugins",
)  # fmt: skip


@dataclass(frozen=True)
class Project:
    """The files of a pipeline, with paths relative to `root`.

    `pipeline_files` are those of the command line. `files` are all that a run reads, except those
    with secrets, which are in `secret_files`. `variables` has for each name whether it is required,
    `secrets` are the names of `${secret:file/NAME}`. No content of a secret is here.
    """

    plan: Plan
    root: Path
    pipeline_files: tuple[str, ...]
    files: Mapping[str, bytes]
    secret_files: tuple[str, ...]
    variables: Mapping[str, bool]
    secrets: tuple[str, ...]
    warnings: tuple[PenstockError, ...]


def read_project(
    paths: Sequence[Path], environment: Mapping[str, str], *, local: bool = False
) -> Project:
    """Returns the project of pipeline files. Raises UserError for errors in the files.

    `local` is whether the driver runs the tasks, and not executors. Variables of the environment
    may be missing. Raises UserError for a secret in a file.
    """
    _check_languages(paths)
    variables = RecordedVariables(environment)
    plan = _plan(paths, variables, local=local)
    check_literal_secrets(plan)
    values = list(texts(_source_map(plan)))
    found = _find_files(plan, values)
    secret = {path for value in values for path in _secret_files(value)}
    secret |= {path for path in found if _is_secret(path)}
    root = Path(os.path.commonpath([path.parent for path in [*found, *secret]]))
    relative = {path: path.relative_to(root).as_posix() for path in [*found, *secret]}
    return Project(
        plan=plan,
        root=root,
        pipeline_files=tuple(relative[_absolute(path)] for path in paths),
        files={relative[path]: path.read_bytes() for path in found if path not in secret},
        secret_files=tuple(sorted(relative[path] for path in secret)),
        variables=variables.names(),
        secrets=tuple(sorted({n for value in values for n in value.references("secret:file/")})),
        warnings=(
            *plan.warnings,
            *_foreign_files(values),
            *local_data_warnings(plan, set(found), one_machine=local),
        ),
    )


def _check_languages(paths: Sequence[Path]) -> None:
    for path in paths:
        if str(path) == STANDARD_INPUT:
            raise UserError(
                "expected a file, found standard input", code="usage",
                hint="Write the pipeline to a file: a cluster reads it again at each start.",
            )  # fmt: skip
        if path.exists() and (language := language_of(str(path))) not in LANGUAGES:
            raise UserError(
                f"{path} is a file of {language}, which cannot be deployed as it is",
                code="usage",
                hint=f"Run penstock convert {path} > pipeline.yaml, and deploy that file.",
            )


def _plan(paths: Sequence[Path], variables: RecordedVariables, *, local: bool) -> Plan:
    """Returns the plan. Its errors are those without the values of missing variables.

    A state in an object store is planned for the master of the deployment: executors of a cluster
    do not write it. So is a pipeline whose own master may be the value of a missing variable.
    """
    partial, errors = app.partial_plan(list(paths), env=variables)
    plan = partial.plan if partial is not None else None
    other_state = plan and plan.location.url and is_local(plan.spec.runtime) != local
    if other_state or (errors and variables.unset):
        overrides = [f"runtime.master={_LOCAL if local else _CLUSTER}"]
        partial, errors = app.partial_plan(list(paths), overrides=overrides, env=variables)
    if errors and variables.unset:
        app.plan(list(paths))
    raise_all(errors)
    assert partial is not None
    return partial.plan


def _source_map(plan: Plan) -> SourceMap:
    return plan.pipeline.source_map


def python_files(plan: Plan) -> list[Path]:
    """Returns the Python files beside a pipeline that its run imports."""
    values = list(texts(_source_map(plan)))
    return [path for path in _find_files(plan, values) if path.suffix == ".py"]


def _find_files(plan: Plan, values: Sequence[Value]) -> list[Path]:
    """Returns the files that a run reads, those of the pipeline first."""
    pipeline = [_absolute(Path(name)) for name in _source_map(plan).files]
    named = [*pipeline, *_preprocessors(pipeline), *_modules(plan)]
    tables = {node.route for node in plan.of("source") if node.static}
    named += [_absolute(value.path) for value in values if _names_file(value, tables)]
    directories = [_absolute(v.path) for v in values if v.option == _DIRECTORY_OPTION]
    bases = [*dict.fromkeys(path.parent for path in pipeline), *directories]
    return with_imports(dict.fromkeys(named), bases)


def _names_file(value: Value, tables: Collection[Route] = ()) -> bool:
    """Returns whether a value is the path of a file that a run reads.

    The data of a source are no such files, except those of `tables`, which are read as a whole.
    """
    if value.route[0] not in _SECTIONS_WITH_PATHS or not value.is_relative:
        return False
    if value.option == _DATA_OPTION and value.route[:2] not in tables:
        return False
    try:
        return len(value.text) < 1024 and "\n" not in value.text and value.path.is_file()
    except (OSError, ValueError):
        return False


def _modules(plan: Plan) -> Iterator[Path]:
    """Yields the files of the functions `module:name` and of the modules of steps."""
    for node in plan.of("transform"):
        config = node.component.config
        function = getattr(config, "function", None)
        base = node.component.context.base.absolute()
        if isinstance(function, str) and ":" in function and module_path(function, base).is_file():
            yield from map(_absolute, module_files(function.partition(":")[0], [base]))
        if isinstance(config, StepsConfig):
            for step in config.steps:
                bases = [locate(each, base) for each in (*step.python_path, ".")]
                if step.type == "python" and step.module is not None:
                    yield from map(_absolute, module_files(str(step.module), bases))


def _preprocessors(pipeline: Sequence[Path]) -> Iterator[Path]:
    for path in pipeline:
        yield from map(_absolute, preprocessor_modules(path))


def _secret_files(value: Value) -> Iterator[Path]:
    """Yields the files whose text is in a value, as `${file:PATH}`, or that an option names."""
    for name in value.references("file:"):
        if not name.startswith(("/", "~")):
            yield _absolute(value.base / name)
    if value.option in SECRET_OPTIONS and _names_file(value):
        yield _absolute(value.path)


def _is_secret(path: Path) -> bool:
    return path.suffix.lower() in SECRET_SUFFIXES or _PRIVATE_KEY in path.read_bytes()


def _foreign_files(values: Sequence[Value]) -> Iterator[PenstockError]:
    """Yields a warning for each file outside of the project, which is not shipped with it."""
    for value in values:
        is_file = value.route[0] in _SECTIONS_WITH_PATHS and value.text.startswith("/")
        if is_file and value.option != _DATA_OPTION and _exists(value.text):
            yield PlanError(
                f"{'.'.join(map(str, value.route))} is an absolute path, whose file is not copied",
                code="local-path",
                hint="Add the file to the image, or write a path relative to the pipeline file.",
            )


def _exists(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def _absolute(path: Path) -> Path:
    return Path(os.path.normpath(path.absolute()))
