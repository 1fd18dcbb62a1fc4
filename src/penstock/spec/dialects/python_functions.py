"""Names of Python functions in dialects. This module is light: workers of Spark import it."""

from penstock.spec.dialects.arroyo import python_functions as arroyo

MODULES = (arroyo.MODULE,)
"""Modules that provide the decorators of Penstock."""
SAME_OPTIONS = {**arroyo.SAME}
"""Names of options, and the options of Penstock with the same meaning."""
OPPOSITE_OPTIONS = {**arroyo.OPPOSITE}
"""Names of options, and the options of Penstock with the opposite meaning."""
SPELLINGS = {**SAME_OPTIONS, **OPPOSITE_OPTIONS}
