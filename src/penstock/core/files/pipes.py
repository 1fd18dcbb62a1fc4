"""Named pipes: opened without waiting for a writer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO


def open_without_waiting(path: Path) -> BinaryIO:
    """Opens a file for reading. A named pipe without a writer is at its end, and does not block."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "rb")
