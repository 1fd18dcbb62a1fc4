"""Files of object stores in memory, without a server."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore

from penstock.core.files.shipped_file import shipping
from penstock.sdk import object_files
from penstock.sdk.object_store import StorageOptions

CONTENT = bytes(range(256)) * 400


def test_requests_of_a_whole_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read by few requests, each of a limited size."""
    monkeypatch.setattr(object_files, "_READ_BYTES", 1000)
    monkeypatch.setattr(object_files, "_RANGE_BYTES", 40_000)
    store, get_range = MemoryStore(), obstore.get_range
    obstore.put(store, "a", CONTENT)
    lengths = []

    def counted(*place: Any, **part: Any) -> Any:
        lengths.append(part["length"])
        return get_range(*place, **part)

    monkeypatch.setattr(obstore, "get_range", counted)
    with object_files.open_reader(store, "a") as file:
        assert file.read() == CONTENT
    assert lengths == [40_000, 40_000, len(CONTENT) - 80_000]
    with object_files.open_reader(store, "a") as file:
        assert file.read(90_000) + file.read() == CONTENT


def test_the_key_of_a_service_account_is_shipped(tmp_path: Path) -> None:
    """Executors of a cluster have no file at the path of the driver."""
    path = tmp_path / "key.json"
    path.write_text("made up")
    options = StorageOptions.model_validate({"auth": {"service_account": str(path)}})
    with shipping():
        pickled = pickle.dumps(options)
    path.unlink()
    auth = pickle.loads(pickled).auth
    assert Path(auth.service_account).read_text() == "made up"
