"""The built files of the console, read once."""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

INDEX = "index.html"
MANIFEST = "manifest.json"
ASSETS = "assets"


@dataclass(frozen=True)
class Asset:
    """A file of the console. `compressed` is its content by gzip; None without one."""

    content: bytes
    media_type: str
    compressed: bytes | None = None


@dataclass(frozen=True)
class Assets:
    """The page of the console, and the files that it loads by their names below `assets/`."""

    page: bytes
    files: Mapping[str, Asset]


def built_files() -> Traversable:
    """Returns the directory of the built console. It may not exist."""
    return files("penstock.server.console") / "static"


def load_assets(directory: Traversable) -> Assets | None:
    """Returns the files of a built console; None if it is not built."""
    page = directory / INDEX
    if not page.is_file():
        return None
    found = {each.name: each.read_bytes() for each in (directory / ASSETS).iterdir()}
    assets = {
        name: Asset(content, media_type(name), found.get(f"{name}.gz"))
        for name, content in found.items()
        if not name.endswith(".gz")
    }
    return Assets(page.read_bytes(), assets)


def files_of_manifest(directory: Traversable) -> set[str]:
    """Returns the paths of all files that the manifest of a built console names."""
    manifest = json.loads((directory / MANIFEST).read_text())
    return {
        path
        for entry in manifest.values()
        for path in (entry["file"], *entry.get("css", ()), *entry.get("assets", ()))
    }


def media_type(name: str) -> str:
    """Returns the type of a file by its name alone: the tables of the system differ."""
    known = {
        ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml",
        ".yaml": "text/plain", ".sql": "text/plain", ".md": "text/plain", ".py": "text/plain",
    }  # fmt: skip
    suffix = name[name.rfind(".") :]
    return known.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
