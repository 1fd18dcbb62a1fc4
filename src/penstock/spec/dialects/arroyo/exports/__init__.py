"""Connection tables and connection profiles of Arroyo's web API as statements and connections.

`statements.py` is the file to start at. `settings.py` has the options of a configuration, and
`columns.py` the columns of a schema.
"""

from penstock.spec.dialects.arroyo.exports.statements import is_export, to_text

__all__ = ["is_export", "to_text"]
