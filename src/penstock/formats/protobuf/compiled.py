"""Descriptors of `.proto` files, by the compiler."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from penstock.core.errors import MissingExtra, PlanError


def descriptors_of(schema_file: str, include: Sequence[str]) -> bytes:
    """A serialized FileDescriptorSet, of a `.proto` file or one that holds such a set."""
    path = Path(schema_file)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise PlanError(f"cannot read {path}: {error.strerror}", code="unreadable-file") from error
    return _compiled(path, include) if path.suffix == ".proto" else content


def compiled_text(name: str, text: str, imported: Mapping[str, str]) -> bytes:
    """The same of a text, whose imports are texts by their paths."""
    with tempfile.TemporaryDirectory() as directory:
        for path, content in {**imported, name: text}.items():
            if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                raise PlanError(f'"{path}" is not a path to import', code="invalid-schema")
            place = Path(directory) / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content, encoding="utf-8")
        return _compiled(Path(directory) / name, ())


def _compiled(path: Path, include: Sequence[str]) -> bytes:
    try:
        import grpc_tools
    except ModuleNotFoundError as error:
        raise MissingExtra.of("protobuf", "grpcio-tools") from error
    standard = Path(str(grpc_tools.__file__)).parent / "_proto"
    roots = [f"-I{root}" for root in (path.parent, *include, standard)]
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "set"
        command = [sys.executable, "-m", "grpc_tools.protoc", *roots, "--include_imports"]
        command += [f"--descriptor_set_out={out}", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode or not out.exists():
            message = f"{path.name} does not compile"
            raise PlanError(message, code="invalid-schema", detail=done.stderr)
        return out.read_bytes()
