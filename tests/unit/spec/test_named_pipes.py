"""Pipeline files and secrets that are named pipes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.core.errors import SpecError
from penstock.spec.documents.secrets import SecretError, reveal
from penstock.spec.yaml.parse import read_document


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipeline.yaml"
    os.mkfifo(path)
    return path


def written(pipe: Path, text: bytes) -> int:
    """Writes to a pipe and closes its writer. Returns a reader, which keeps the data."""
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(pipe, os.O_WRONLY)
    os.write(writer, text)
    os.close(writer)
    return reader


def test_pipe_without_writer_is_an_error(pipe: Path) -> None:
    with pytest.raises(SpecError) as caught:
        read_document(pipe)
    assert caught.value.code == "not-a-file"
    assert str(pipe) in caught.value.message


def test_pipe_with_data_is_read(pipe: Path) -> None:
    reader = written(pipe, b"name: orders\n")
    assert read_document(pipe).files == (str(pipe),)
    os.close(reader)


def test_secret_in_pipe_without_writer_is_an_error(pipe: Path) -> None:
    with pytest.raises(SecretError, match="named pipe without data"):
        reveal(f"file/{pipe.name}", {"PENSTOCK_SECRETS": str(pipe.parent)})
