"""`include:` — the files that a file names, read once each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as Environment
from glob import has_magic
from pathlib import Path

from penstock.core.errors import Mistakes, PenstockError, SpecError
from penstock.core.location import Location
from penstock.spec.document import Document, missing, read
from penstock.spec.interpolate import Interpolation
from penstock.spec.nodes import Node, Scalar, Sequence


class Inclusion:
    """Reads files and what they include; what is wrong is in `mistakes`."""

    def __init__(self, env: Environment[str, str]) -> None:
        self.env = env
        self.mistakes: list[PenstockError] = []
        self._seen: set[Path] = set()

    def read(self, paths: Iterable[str | Path]) -> list[Document]:
        """The documents, each before those that it includes."""
        found: list[Document] = []
        for path in paths:
            found += self._one(str(path), [], None)
        return found

    def _one(self, path: str, above: list[Path], where: Location | None) -> list[Document]:
        real = Path(path).resolve()
        if real in above:
            ring = [*above[above.index(real) :], real]
            self.mistakes.append(
                SpecError(
                    "the files include one another: " + " -> ".join(each.name for each in ring),
                    code="include-cycle",
                    where=where,
                )
            )
        if real in self._seen:
            return []
        self._seen.add(real)
        try:
            document = read(path, where)
        except (SpecError, Mistakes) as error:
            self.mistakes.append(error)
            return []
        found = [document]
        for name, place in self._included(document):
            found += self._one(name, [*above, real], place)
        return found

    def _included(self, document: Document) -> Iterator[tuple[str, Location]]:
        node = document.root.get("include")
        if node is None:
            return
        interpolation = Interpolation(self.env)
        for item in _items(interpolation.node(node)):
            if isinstance(item, Scalar) and item.broken:
                continue
            if not isinstance(item, Scalar) or not isinstance(item.value, str) or not item.value:
                self.mistakes.append(_not_a_path(item))
                continue
            yield from self._matches(document.files[0], item)
        self.mistakes += interpolation.mistakes

    def _matches(self, name: str, item: Scalar) -> Iterator[tuple[str, Location]]:
        text = str(item.value)
        path = Path(name).parent / text if name != "<stdin>" else Path(text)
        if not has_magic(text):
            if path.exists():
                yield str(path), item.location
            else:
                self.mistakes.append(missing(path, item.location))
            return
        own = Path(name).resolve()
        fixed = _fixed(path)
        found = sorted(fixed.glob(str(path.relative_to(fixed))))
        matches = [str(each) for each in found if each.resolve() != own]
        if not matches:
            self.mistakes.append(
                SpecError(
                    f"no file matches {path}",
                    code="no-such-file",
                    where=item.location,
                    hint=f"looked in {fixed}",
                )
            )
        yield from ((each, item.location) for each in matches)


def _fixed(path: Path) -> Path:
    """The leading part of a pattern that has no wildcard."""
    return next(each for each in path.parents if not has_magic(str(each)))


def _items(node: Node) -> tuple[Node, ...]:
    """The names of files: one, several, or none where nothing stands behind `include:`."""
    if isinstance(node, Sequence):
        return node.items
    return () if isinstance(node, Scalar) and node.value is None else (node,)


def _not_a_path(item: Node) -> SpecError:
    return SpecError('"include" expects the names of files', code="wrong-type", where=item.location)
