"""`SET`: the name, the description and the runtime of the pipeline of a script."""

from __future__ import annotations

from penstock.core.errors import SpecError
from penstock.core.text import did_you_mean
from penstock.spec.runtime_models import Runtime
from penstock.spec.script.option_tree import Tree
from penstock.spec.script.statements import Set
from penstock.spec.script.tokens import Text
from penstock.spec.tree.nodes import File

_TOP_LEVEL = ("name", "description", "function_files", "plugins")
_RUNTIME = "runtime"
_SPARK = "spark"


def add_setting(file: File, settings: Tree, statement: Set) -> None:
    """Adds a setting. Raises SpecError at an unknown name.

    `SET spark.NAME` is a setting of Spark. The prefix `runtime.` is optional.
    """
    path = _split(statement.path)
    names = [part.value for part in path]
    if names[0] == _RUNTIME and len(names) > 1:
        path, names = path[1:], names[1:]
    if names[0] == _SPARK and len(names) > 1:
        key = path[0]._replace(value=".".join(names), end=path[-1].end)
        path = [path[0], key]
    elif names[0] not in Runtime.model_fields:
        if len(names) > 1 or names[0] not in _TOP_LEVEL:
            known = [*_TOP_LEVEL, *Runtime.model_fields]
            raise SpecError(
                f'unknown setting "{".".join(names)}"',
                code="unknown-setting",
                where=file.location(path[0].start, path[-1].end),
                hint=did_you_mean(names[0], known),
            )
        settings.add(path, statement.value)
        return
    settings.add([path[0]._replace(value=_RUNTIME), *path], statement.value)


def _split(path: list[Text]) -> list[Text]:
    """Splits the dotted names of a path, such as `'runtime.trigger'`."""
    parts = []
    for text in path:
        start = text.start
        for part in text.value.split("."):
            parts.append(Text(part, start, start + len(part)))
            start += len(part) + 1
    return parts
