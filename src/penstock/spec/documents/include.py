"""Includes: further files of a pipeline.

`include: common.yaml` or `include: [common.yaml, "sinks/*.yaml", views.sql]` merges other files
into a file: YAML files and SQL scripts, which may include further files. Paths and patterns are
relative to the file that names them. They may contain variables. A file that is included several
times is read once.

Sources, transforms, sinks, connections and tests of all files are added together. Settings of
`runtime` are merged key by key. A node, a setting or another key that two files define is an error.
Relative paths in an included file are relative to that file; `runtime.state` is relative to the
first file.

`penstock run shop.yaml production.yaml` merges files in the same way, but options of a later file
replace those of an earlier one: maps are merged key by key, other values and lists are replaced. A
node or format of another `type` is replaced as a whole. Tests and function files are added
together, and `name` is in one file. `penstock explain` lists the replaced options, and `penstock
convert --to yaml` prints the result. `--set PATH=VALUE` replaces a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as Environment
from glob import has_magic
from pathlib import Path

from penstock.core.errors import PenstockError, SpecError, ValidationErrors
from penstock.core.location import Location
from penstock.core.path_permission import check_path
from penstock.core.text import shorten
from penstock.spec.documents.files import STANDARD_INPUT, missing_file_error
from penstock.spec.documents.interpolate import Interpolator
from penstock.spec.front_end import document_front_end
from penstock.spec.tree.document import Document
from penstock.spec.tree.nodes import Node, ScalarNode, SequenceNode


class IncludeReader:
    """A reader of files in all languages, and of their includes. Errors are in `errors`."""

    def __init__(self, env: Environment[str, str]) -> None:
        self.env = env
        self.errors: list[PenstockError] = []
        self._seen: set[Path] = set()

    def read(self, paths: Iterable[str | Path]) -> list[list[Document]]:
        """Returns the documents of each file: its own before its includes."""
        files = [self._read_file(str(path), [], None) for path in paths]
        return [documents for documents in files if documents]

    def _read_file(self, path: str, above: list[Path], where: Location | None) -> list[Document]:
        real = Path(path).resolve()
        if real in above:
            cycle = [*above[above.index(real) :], real]
            self.errors.append(
                SpecError(
                    "the includes contain a cycle: " + " -> ".join(file.name for file in cycle),
                    code="include-cycle",
                    where=where,
                )
            )
        if real in self._seen:
            return []
        self._seen.add(real)
        try:
            if where is not None:
                check_path(path, where)  # a pattern may match a link
            document = document_front_end(path).read_document(path, where)
        except (SpecError, ValidationErrors) as error:
            self.errors.append(error)
            return []
        documents = [document]
        for name, location in self._included(document):
            documents += self._read_file(name, [*above, real], location)
        return documents

    def _included(self, document: Document) -> Iterator[tuple[str, Location]]:
        node = document.root.get("include")
        if node is None:
            return
        interpolator = Interpolator(self.env)
        for item in _items(interpolator.node(node)):
            if isinstance(item, ScalarNode) and item.invalid:
                continue
            if (
                not isinstance(item, ScalarNode)
                or not isinstance(item.value, str)
                or not item.value
            ):
                self.errors.append(_not_a_path(item))
                continue
            yield from self._matches(document.files[0], item)
        self.errors += interpolator.errors

    def _matches(self, name: str, item: ScalarNode) -> Iterator[tuple[str, Location]]:
        text = str(item.value)
        path = Path(name).parent / text if name != STANDARD_INPUT else Path(text)
        try:
            check_path(path, item.location)
        except SpecError as error:
            self.errors.append(error)
            return
        if not has_magic(text):
            try:
                missing = not path.exists()
            except OSError as error:
                self.errors.append(_unreadable(path, error, item.location))
                return
            if missing:
                self.errors.append(missing_file_error(path, item.location))
            else:
                yield str(path), item.location
            return
        including = Path(name).resolve()
        directory = _fixed_directory(path)
        files = sorted(directory.glob(str(path.relative_to(directory))))
        matches = [str(file) for file in files if file.resolve() != including]
        if not matches:
            self.errors.append(
                SpecError(
                    f"no file matches {path}",
                    code="missing-file",
                    where=item.location,
                    hint=f"check the pattern; the directory is {directory}",
                )
            )
        yield from ((file, item.location) for file in matches)


def _fixed_directory(path: Path) -> Path:
    """Returns the leading directory of a pattern, without wildcards."""
    return next(parent for parent in path.parents if not has_magic(str(parent)))


def _items(node: Node) -> tuple[Node, ...]:
    """Returns the items of `include:`, which may be a list, a scalar or empty."""
    if isinstance(node, SequenceNode):
        return node.items
    return () if isinstance(node, ScalarNode) and node.value is None else (node,)


def _unreadable(path: Path, error: OSError, where: Location) -> SpecError:
    return SpecError(
        f"cannot read {shorten(str(path), 80)}: {error.strerror}",
        code="unreadable-file",
        where=where,
        hint="write the path of a file that exists, relative to this file",
    )


def _not_a_path(item: Node) -> SpecError:
    return SpecError(
        '"include" expects a path or a list of paths', code="wrong-type", where=item.location
    )
