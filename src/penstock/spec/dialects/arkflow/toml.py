"""TOML files to trees, with the lines of their keys."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from penstock.core.errors import SpecError
from penstock.core.location import Location
from penstock.spec.documents.files import read_text
from penstock.spec.tree.document import Document
from penstock.spec.tree.nodes import Entry, File, MappingNode, Node, ScalarNode, SequenceNode

_HEADER = re.compile(r"^\s*\[(\[?)\s*([^\]]+?)\s*\]", re.MULTILINE)
_KEY = re.compile(r"^\s*((?:[\w-]+|\"[^\"]*\")(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"))*)\s*=")
_AT = re.compile(r"at line (\d+), column (\d+)")

Path_ = tuple[str | int, ...]


def read_toml(path: str, where: Location | None = None) -> Document:
    """Returns the document of a TOML file. Raises SpecError."""
    file = File(path, read_text(Path(path), where), Path(path).absolute().parent)
    try:
        data = tomllib.loads(file.text)
    except tomllib.TOMLDecodeError as error:
        at = _AT.search(str(error))
        line, column = (int(at[1]), int(at[2])) if at else (1, 1)
        raise SpecError(
            f"the file is not valid TOML: {str(error).split(' (at')[0]}", code="invalid-file",
            where=Location(path, line, column, 1, file.line(line)),
        ) from None  # fmt: skip
    node = _node(data, (), file, _locations(file), Location(path, 1, 1, 1, file.line(1)))
    assert isinstance(node, MappingNode)
    return Document(node, (path,))


def _parts(text: str) -> list[str]:
    return [part.strip().strip('"') for part in re.findall(r'"[^"]*"|[^.]+', text) if part.strip()]


def _locations(file: File) -> dict[Path_, Location]:
    """Returns the places of tables and keys, by their paths."""
    found: dict[Path_, Location] = {}
    counts: Counter[Path_] = Counter()
    prefix: Path_ = ()
    position = 0
    for line in file.text.splitlines(keepends=True):
        header, key = _HEADER.match(line), _KEY.match(line)
        if header is not None:
            prefix = _table_path(_parts(header[2]), bool(header[1]), counts)
            location = file.location(position + header.start(2), position + header.end(2))
            for end in range(1, len(prefix) + 1):
                found.setdefault(prefix[:end], location)
        elif key is not None:
            location = file.location(position + key.start(1), position + key.end(1))
            names = _parts(key[1])
            for end in range(1, len(names) + 1):
                found.setdefault((*prefix, *names[:end]), location)
        position += len(line)
    return found


def _table_path(names: list[str], is_item: bool, counts: Counter[Path_]) -> Path_:
    path: Path_ = ()
    for name in names[:-1]:
        path = (*path, name)
        if counts[path]:
            path = (*path, counts[path] - 1)
    path = (*path, names[-1])
    if is_item:
        counts[path] += 1
        path = (*path, counts[path] - 1)
    return path


def _node(
    value: Any, path: Path_, file: File, known: dict[Path_, Location], above: Location
) -> Node:
    where = known.get(path, above)
    if isinstance(value, dict):
        entries = []
        for name, each in value.items():
            place = known.get((*path, name), where)
            key = ScalarNode(name, name, name, place, file.base, False)
            entries.append(Entry(key, _node(each, (*path, name), file, known, where)))
        return MappingNode(tuple(entries), where, file.base)
    if isinstance(value, list):
        items = (_node(each, (*path, i), file, known, where) for i, each in enumerate(value))
        return SequenceNode(tuple(items), where, file.base)
    plain = value if isinstance(value, str | int | float | bool) else str(value)
    return ScalarNode(plain, str(plain), str(plain), where, file.base, not isinstance(plain, str))
