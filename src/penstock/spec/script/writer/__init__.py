"""Pipelines as SQL scripts."""

from penstock.spec.script.writer.script import Script, to_script

__all__ = ["Script", "to_script"]
