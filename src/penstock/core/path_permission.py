"""Permission of local paths in pipelines, which `penstock serve` confines to some directories.

The variable of the environment reaches all processes of a run. It has the permitted directories,
and the withheld ones within them. Of several directories that contain a path the innermost one
decides. Symbolic links are resolved. Paths of other systems are not confined.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

from penstock.core.errors import SpecError
from penstock.core.location import Location

VARIABLE = "PENSTOCK_PERMITTED_PATHS"
CODE = "path-rejected"
_LOCAL_URL = re.compile(
    r"(?:^|::)(?:ipc://|(?:file|local):(?://[^/]*)?)(?P<path>.*)", re.IGNORECASE
)
_URL = re.compile(r"[A-Za-z][^/]*://")
_OTHER_URL = re.compile(r"\b(?!(?:file|local):)[A-Za-z][\w+.-]*://[^\s,;]*", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s,;:='\"]+")
_PATH = re.compile(r"/|~|\.\.(?:/|$)")


def setting_of(permitted: Iterable[Path], withheld: Iterable[Path]) -> str:
    """Returns the value of the variable."""
    return json.dumps({"permitted": [*map(str, permitted)], "withheld": [*map(str, withheld)]})


def paths_confined() -> bool:
    """Returns whether local paths are confined in this process."""
    return bool(os.environ.get(VARIABLE))


def rejection(path: str | Path, base: Path | None = None) -> tuple[str, str] | None:
    """Returns the message and the hint for a path that is not permitted; None for others.

    `path` may be a URL or a pattern. A relative path begins at `base`, by default at the working
    directory.
    """
    setting = os.environ.get(VARIABLE)
    if not setting:
        return None
    permitted, withheld = _directories(setting)
    if all(_permits(permitted, withheld, real) for real in _real_paths(str(path), base)):
        return None
    message = f"the path {path} is outside the directories that the server permits"
    return message, permitted_hint()


def permitted_hint() -> str:
    """Returns the hint for a path that is not permitted."""
    permitted, _ = _directories(os.environ[VARIABLE])
    return (
        f"write a path below {' or '.join(permitted)}, or ask the operator to permit another "
        "directory by --allow-path"
    )


def check_path(path: str | Path, where: Location | None = None, base: Path | None = None) -> None:
    """Raises SpecError for a path that is not permitted."""
    found = rejection(path, base)
    if found is not None:
        raise SpecError(found[0], code=CODE, where=where, hint=found[1])


def rejected_within(setting: str) -> bool:
    """Returns whether a setting of another program has a path that is not permitted.

    Texts that begin with `/`, `~` or `../` are paths, in lists and assignments too.
    """
    if not paths_confined():
        return False
    parts = filter(_PATH.match, _SEPARATORS.split(_OTHER_URL.sub(" ", setting)))
    return any(map(rejection, (*_OTHER_URL.findall(setting), *parts)))


@lru_cache(maxsize=8)
def _directories(setting: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    found = json.loads(setting)
    permitted, withheld = (
        tuple(map(os.path.realpath, found[key])) for key in ("permitted", "withheld")
    )
    return permitted, withheld


def _permits(permitted: Iterable[str], withheld: Iterable[str], path: str) -> bool:
    """Returns whether the innermost directory that contains a path is a permitted one."""
    parents = {path, *map(str, Path(path).parents)}
    inner = max((len(each) for each in permitted if each in parents), default=0)
    return inner > max((len(each) for each in withheld if each in parents), default=0)


def _real_paths(text: str, base: Path | None) -> Iterator[str]:
    """Yields the places that a path may have, without links; none for a URL of another system.

    Some programs remove `..` from a path before they follow its links, and others afterwards. With
    `..` a URL may be the path of a file: `a://../../x`. A path that cannot be resolved, as one with
    NUL, has the root as its place.
    """
    local = _LOCAL_URL.search(text)
    if local is None and _URL.match(text) and ".." not in Path(unquote(text)).parts:
        return
    path = local["path"] if local is not None else text
    for each in {path, unquote(path)}:
        absolute = os.path.join(base or Path.cwd(), os.path.expanduser(each))  # noqa: PTH118, PTH111
        for form in (absolute, os.path.normpath(absolute)):
            try:
                yield os.path.realpath(form)
            except (OSError, ValueError):
                yield os.sep
