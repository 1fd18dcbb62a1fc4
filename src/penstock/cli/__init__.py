"""The command line: one file for each verb, each prints one report."""

from penstock.cli.main import main

__all__ = ["main"]
