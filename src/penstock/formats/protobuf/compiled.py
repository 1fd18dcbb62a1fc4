"""Compilation of `.proto` files to descriptors."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from penstock.core.errors import MissingExtra, PlanError
from penstock.core.files.regular_files import check_regular_file


def read_descriptors(schema_file: str, include: Sequence[str]) -> bytes:
    """Returns the serialized FileDescriptorSet of a `.proto` file, or of a file with such a set."""
    path = Path(schema_file)
    try:
        check_regular_file(path)
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise PlanError(f"cannot read {path}: {reason}", code="unreadable-file") from error
    return _compile(path, include) if path.suffix == ".proto" else content


def compile_text(name: str, text: str, imported: Mapping[str, str]) -> bytes:
    """Compiles a text whose imports are texts by path."""
    with tempfile.TemporaryDirectory() as directory:
        for path, content in {**imported, name: text}.items():
            if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                raise PlanError(f'"{path}" is not a valid import path', code="invalid-schema")
            file = Path(directory) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")
        return _compile(Path(directory) / name, ())


def _compile(path: Path, include: Sequence[str]) -> bytes:
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
        process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if process.returncode or not out.exists():
            message = f"{path.name} does not compile"
            raise PlanError(message, code="invalid-schema", detail=process.stderr)
        return out.read_bytes()
