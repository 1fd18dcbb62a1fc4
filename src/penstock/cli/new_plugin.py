"""The package of a plugin, as `penstock new plugin` writes it."""

from __future__ import annotations

import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from penstock.core.errors import UserError

TEMPLATE = files("penstock.cli") / "templates" / "plugin"
_SUFFIX = ".template"
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def write_plugin(name: str, directory: Path | None, *, force: bool) -> Path:
    """Writes the package of a plugin and returns its directory. Raises UserError.

    The directory is `penstock-NAME` by default. With `force` existing files are overwritten.
    """
    if not _NAME.fullmatch(name):
        raise UserError(
            f'"{name}" is not the name of a plugin' if name else "expected the name of a plugin",
            code="usage",
            hint="Use lower-case letters, digits and _, as in penstock new plugin weather.",
        )  # fmt: skip
    root = directory or Path(f"penstock-{name}")
    if root.exists() and not force and (not root.is_dir() or any(root.iterdir())):
        raise UserError(
            f"{root} exists", code="file-exists",
            hint="Choose another directory, or add --force to overwrite its files.",
        )  # fmt: skip
    try:
        _write(TEMPLATE, root, name)
    except OSError as error:
        raise UserError(
            f"cannot write {error.filename}: {error.strerror}", code="unwritable-file"
        ) from error
    return root


def _write(template: Traversable, target: Path, name: str) -> None:
    """Writes the files of a directory of the template."""
    target.mkdir(parents=True, exist_ok=True)
    for entry in template.iterdir():
        if entry.is_dir():
            directory = f"penstock_{name}" if entry.name == "package" else entry.name
            _write(entry, target / directory, name)
        elif entry.name.endswith(_SUFFIX):
            class_name = "".join(part.capitalize() for part in name.split("_"))
            text = entry.read_text(encoding="utf-8")
            text = text.replace("@name@", name).replace("@Name@", class_name)
            path = target / entry.name.removesuffix(_SUFFIX).replace("plugin", name)
            path.write_text(text, encoding="utf-8")
