"""Modules of WebAssembly."""
