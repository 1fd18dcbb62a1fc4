"""One file per transform type, found by entry point, imported by nobody."""
