"""Files, includes, `--set` and connections to one document."""

from __future__ import annotations

import os
from collections.abc import Mapping as Environment
from collections.abc import Sequence as List
from pathlib import Path

from penstock.core.errors import PenstockError, raise_all
from penstock.spec.connections import apply_connections
from penstock.spec.document import Document
from penstock.spec.include import Inclusion
from penstock.spec.interpolate import Interpolation
from penstock.spec.merge import merge
from penstock.spec.nodes import Mapping
from penstock.spec.overrides import Sets, apply_sets


def load(
    paths: List[str | Path],
    *,
    sets: Sets = (),
    env: Environment[str, str] | None = None,
) -> Document:
    """The one document that files, their includes and `--set a.b=value` make.

    `-` is standard input. `env` is where `${NAME}` looks; the process's when absent. The
    options of a connection are in the nodes that use it. Raises SpecError, or Mistakes.
    """
    document, mistakes = assemble(paths, sets=sets, env=env)
    raise_all(mistakes)
    assert document is not None
    return document


def assemble(
    paths: List[str | Path],
    *,
    sets: Sets = (),
    env: Environment[str, str] | None = None,
) -> tuple[Document | None, list[PenstockError]]:
    """Like `load`, with the mistakes beside the document; None where a file cannot be read."""
    known = os.environ if env is None else env
    inclusion = Inclusion(known)
    parts = inclusion.read(paths)
    if inclusion.mistakes or not parts:
        return None, inclusion.mistakes
    document, mistakes = merge(parts)
    document, wrong = apply_sets(document, sets)
    interpolation = Interpolation(known)
    root = interpolation.node(document.root)
    assert isinstance(root, Mapping)
    document, unknown = apply_connections(Document(root, document.files))
    return document, [*mistakes, *wrong, *interpolation.mistakes, *unknown]


def tests_beside(path: str | Path) -> Path:
    """Where the tests of a pipeline file stand when not in it: `x.test.yaml` beside `x.yaml`."""
    path = Path(path)
    return path.with_name(f"{path.stem}.test{path.suffix}")


def load_tests(
    path: str | Path,
    *,
    sets: Sets = (),
    env: Environment[str, str] | None = None,
) -> Document:
    """A pipeline file together with the tests of the file beside it, where there is one."""
    beside = tests_beside(path)
    return load([path, beside] if beside.is_file() else [path], sets=sets, env=env)
