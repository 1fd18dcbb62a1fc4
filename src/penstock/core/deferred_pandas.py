"""Import of pandas by its first user, not by the first array of PyArrow.

PyArrow imports pandas, if installed, to recognize its objects. This takes half a second and 28 MB
of each process, and few of them use pandas.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_NAME = "pandas"


def defer_pandas() -> None:
    """Makes PyArrow use pandas only once another import has loaded it."""
    if _NAME in sys.modules or _finder() is not None:
        return
    import pyarrow as pa

    sys.meta_path.insert(0, _Finder())
    with hidden_pandas():
        pa.array([0])


def is_deferred() -> bool:
    """Returns whether pandas is deferred and not yet imported."""
    return _finder() is not None


@contextmanager
def hidden_pandas() -> Iterator[None]:
    """Makes imports of pandas fail in this thread, if pandas is deferred and not yet loaded."""
    finder = _finder()
    if finder is None:
        yield
        return
    finder.hidden_from.add(threading.get_ident())
    try:
        yield
    finally:
        finder.hidden_from.discard(threading.get_ident())


def _finder() -> _Finder | None:
    return next((each for each in sys.meta_path if isinstance(each, _Finder)), None)


class _Finder(MetaPathFinder):
    """Finder of pandas until its import, after which PyArrow uses pandas.

    A search alone, as by `importlib.util.find_spec`, changes nothing.
    """

    def __init__(self) -> None:
        self.hidden_from: set[int] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _NAME:
            return None
        if threading.get_ident() in self.hidden_from:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        others = [finder for finder in sys.meta_path if finder is not self]
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next((each for each in specs if each is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self)
        return spec


class _Loader(Loader):
    """Loader of pandas."""

    def __init__(self, loader: Loader, finder: _Finder) -> None:
        self._loader, self._finder = loader, finder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        spec.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        from pyarrow import lib

        lib._pandas_api.pd  # noqa: B018 (PyArrow imports pandas here)
