"""Bytes to Arrow and back, one file each."""
