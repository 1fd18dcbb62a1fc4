"""Files of options and modules of a project on machines that do not have them."""

from __future__ import annotations

import os
import pickle
import shutil
import stat
from pathlib import Path

import pytest

from penstock.core.files import shipped_file
from penstock.core.files.shipped_file import ShippedFile, copy_files, shipping
from penstock.sdk.component import Context
from penstock.sdk.network.tls import Tls
from penstock.transforms.python import Python, PythonConfig


def test_a_file_of_an_option_on_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    shipped_file._directory.cache_clear()
    path = tmp_path / "ca.pem"
    path.write_text("the key")
    tls, plain = Tls(ca=str(path)), pickle.dumps(Tls(ca=str(path)))
    with shipping():
        pickled = pickle.dumps(tls)
    assert pickle.loads(pickled).ca == str(path), "a machine with the file uses it"
    path.write_text("its key")
    assert Path(pickle.loads(pickled).ca or "").read_text() == "the key", "another file there"
    path.unlink()
    assert pickle.loads(plain).ca == str(path)
    for content in (pickled, pickle.dumps(pickle.loads(pickled))):
        found = Path(pickle.loads(content).ca or "")
        assert found.name == "ca.pem" and found.read_text() == "the key"
        assert found.is_relative_to(tmp_path) and stat.S_IMODE(found.stat().st_mode) == 0o600
        assert stat.S_IMODE(found.parents[1].stat().st_mode) == 0o700
    assert "the key" not in f"{tls!r} {pickle.loads(pickled)!r}"


def test_files_that_are_not_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped_file, "MAX_BYTES", 3)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_text("1234")
    for name in ("missing", "large", "pipe", "."):
        with shipping():
            found = pickle.loads(pickle.dumps(ShippedFile(tmp_path / name)))
        assert found == str(tmp_path / name) and found.content is None


def test_modules_of_one_package_on_another_machine(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "shipped_pack").mkdir(parents=True)
    (project / "shipped_pack/__init__.py").write_text("")
    for name in ("first", "second"):
        (project / f"{name}_main.py").write_text(f"from shipped_pack.{name} import transform\n")
        (project / f"shipped_pack/{name}.py").write_text(f"def transform(b): return '{name}'\n")
    pickled = []
    for name in ("first", "second"):
        with shipping():
            config = PythonConfig(function=f"{name}_main:transform")
            pickled.append(pickle.dumps(Python(config, Context(base=project))))
    (project / "first_main.py").write_text("def transform(b): return 'another version'\n")
    (project / "second_main.py").unlink()
    for name, content in zip(("first", "second"), pickled, strict=True):
        found = pickle.loads(content)
        found.open()
        assert found._call(None) == name


def test_a_changed_file_has_a_directory_of_its_own(tmp_path: Path) -> None:
    first, second = (copy_files({"a.py": content}, "project") for content in (b"1", b"2"))
    assert (first / "a.py").read_bytes() == b"1" and (second / "a.py").read_bytes() == b"2"
    assert copy_files({"b.py": b"3"}, "project") == first != copy_files({"b.py": b"3"}, "other")


def test_modules_of_a_project_on_another_machine(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "parts").mkdir(parents=True)
    (project / "main.py").write_text(
        "from parts.shipped_part import LIMIT\ndef transform(batch): return batch.slice(0, LIMIT)\n"
    )
    (project / "parts/__init__.py").write_text("")
    (project / "parts/shipped_part.py").write_text("LIMIT = 7\n")
    (project / "other.py").write_text("raise RuntimeError\n")
    context = Context(base=project)
    transform = Python(PythonConfig(function="main:transform"), context)
    with shipping():
        pickled = pickle.dumps(transform)
    shutil.rmtree(project)
    found = pickle.loads(pickled)
    found.open()
    assert found._call.__globals__["LIMIT"] == 7
    assert not [*found._modules.base.rglob("other.py")]
