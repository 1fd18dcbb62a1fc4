"""Text of YAML to a tree with places. YAML 1.2; every mistake is a SpecError."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.core.errors import OptionError, PenstockError, SpecError, raise_all
from penstock.core.location import Location
from penstock.core.text import nearest
from penstock.spec.compose import Composer
from penstock.spec.nodes import Entry, File, Mapping, Node, Route, Scalar, Sequence, child

__all__ = [
    "Document", "Entry", "File", "Mapping", "Node", "Route", "Scalar", "Sequence", "parse", "read",
]  # fmt: skip

LARGEST = 10 * 1024 * 1024
_UNPRINTABLE = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, eq=False)
class Document:
    """What the user wrote: one tree, possibly of several files."""

    root: Mapping
    files: tuple[str, ...]
    """The files it was made of, the first one first."""

    def find(self, route: Route) -> Node | None:
        """The value at `route`, if there is one."""
        node: Node | None = self.root
        for step in route:
            node = child(node, step) if node is not None else None
        return node

    def at(self, route: Route) -> Node:
        """The value at `route`. Raises KeyError."""
        node = self.find(route)
        if node is None:
            raise KeyError(".".join(map(str, route)))
        return node

    def key(self, route: Route) -> Location:
        """The place of the key that `route` ends with; of a list's item, the item's.

        Where the document does not go that far, the nearest place above.
        """
        for end in range(len(route), 0, -1):
            above, step = self.find(route[: end - 1]), route[end - 1]
            if isinstance(above, Mapping) and (entry := above.entry(str(step))):
                return entry.key.location
            if above is not None and (item := child(above, step)):
                return item.location
        return self.place

    def value(self, route: Route) -> Location:
        """The place of the value at `route`; of its key where it is empty or begins below."""
        node = self.find(route)
        if isinstance(node, Scalar):
            return node.location if node.written else self.key(route)
        if node is not None and node.flow:
            return node.location
        return self.key(route)

    def inside(self, route: Route, line: int, column: int) -> Location:
        """The place of a line and column of the text at `route`."""
        node = self.find(route)
        return node.place(line, column) if isinstance(node, Scalar) else self.value(route)

    def place_of(self, error: PenstockError, route: Route) -> Location:
        """Where an error stands that the component at `route` raised."""
        if error.where is not None:
            return error.where
        if not isinstance(error, OptionError):
            return self.value(route)
        option = (*route, *error.option)
        while len(option) > len(route) and self.find(option) is None:
            option = option[:-1]
        return self.inside(option, *error.at) if error.at else self.value(option)

    @property
    def place(self) -> Location:
        """The first file, as a whole."""
        return Location(self.files[0], 1, 1)

    def names(self, section: str) -> list[str]:
        """The names in a map at the top of the file, such as `sources`."""
        node = self.root.get(section)
        return node.names() if isinstance(node, Mapping) else []

    def entries(self, section: str) -> Iterator[Entry]:
        """The entries of a map at the top of the file."""
        node = self.root.get(section)
        yield from node.entries if isinstance(node, Mapping) else ()


def parse(text: str, name: str = "<text>", base: Path | None = None) -> Document:
    """The document that `text` is; `name` stands for it in messages."""
    file = File(name, text.removeprefix("\ufeff"), base or Path.cwd())
    if found := _UNPRINTABLE.search(file.text):
        raise SpecError(
            f"the character U+{ord(found[0]):04X} cannot be in a YAML file",
            code="invalid-yaml",
            where=file.location(found.start(), found.end()),
            hint="remove it, or write it as an escape in a double-quoted text",
        )
    composer = Composer(file)
    root = composer.compose()
    raise_all(composer.mistakes)
    if root is None or (isinstance(root, Scalar) and not root.written):
        raise SpecError(
            "the file is empty",
            code="empty-file",
            where=Location(name, 1, 1),
            hint="a pipeline has sources, transforms and sinks",
        )
    if not isinstance(root, Mapping):
        found_text = "a list" if isinstance(root, Sequence) else "text"
        raise SpecError(
            f"a pipeline file is a map of sources, transforms and sinks, not {found_text}",
            code="not-a-map",
            where=root.location,
        )
    return Document(root, (name,))


def read(path: str | Path, where: Location | None = None) -> Document:
    """The document in a file; `-` is standard input. `where` is the place that names the file."""
    if str(path) == "-":
        return parse(_decode(sys.stdin.buffer.read(LARGEST + 1), "<stdin>"), "<stdin>")
    data = _bytes(Path(path), where)
    return parse(_decode(data, str(path)), str(path), Path(path).absolute().parent)


def _bytes(path: Path, where: Location | None) -> bytes:
    if path.is_dir():
        raise SpecError(
            f"{path} is a directory",
            code="not-a-file",
            where=where,
            hint=f"name a file in it, or all of them: {path / '*.yaml'}",
        )
    try:
        with path.open("rb") as stream:
            return stream.read(LARGEST + 1)
    except FileNotFoundError:
        raise missing(path, where) from None
    except OSError as error:
        raise SpecError(
            f"cannot read {path}: {error.strerror}", code="unreadable-file", where=where
        ) from None


def missing(path: Path, where: Location | None = None) -> SpecError:
    """The mistake that there is no such file, with the nearest name in its directory."""
    hint = None
    if not path.parent.is_dir():
        hint = f"there is no directory {path.parent}"
    else:
        near = nearest(path.name, (each.name for each in path.parent.iterdir()))
        hint = f'did you mean "{path.parent / near}"?' if near else None
    return SpecError(f"there is no file {path}", code="no-such-file", where=where, hint=hint)


def _decode(data: bytes, name: str) -> str:
    if len(data) > LARGEST:
        raise SpecError(
            f"{name} is larger than {LARGEST // 2**20} MB",
            code="file-too-large",
            where=Location(name, 1, 1),
            hint="is it a pipeline file? Data belongs in a file of its own",
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        place = File(name, before, Path()).location(len(before))
        utf16 = data[:2] in {b"\xff\xfe", b"\xfe\xff"}
        raise SpecError(
            f"the file is not UTF-8: byte 0x{data[error.start]:02X}",
            code="not-utf-8",
            where=Location(name, place.line, place.column),
            hint="it looks like UTF-16; save it as UTF-8" if utf16 else "save it as UTF-8",
        ) from None
