"""Transform types, one file each, loaded through entry points."""
