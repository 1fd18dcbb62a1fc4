"""One file per outside system, found by entry point, imported by nobody."""
