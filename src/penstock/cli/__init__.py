"""The command line: one module for each command."""

from penstock.cli.main import main

__all__ = ["main"]
