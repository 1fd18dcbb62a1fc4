"""Dockerfile of an image for drivers and executors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.resources import files

from penstock.core.version import __version__

DEFAULT_IMAGE = f"penstock:{__version__}"


def dockerfile(extras: Sequence[str] = ()) -> str:
    """Returns the Dockerfile of an image with these extras, and with the Python of this process."""
    text = (files("penstock.deploy.image") / "Dockerfile").read_text(encoding="utf-8")
    python = ".".join(map(str, sys.version_info[:2]))
    return text.replace("ARG PYTHON=3.12", f"ARG PYTHON={python}").replace(
        'ARG EXTRAS=""', f'ARG EXTRAS="{",".join(extras)}"'
    )
