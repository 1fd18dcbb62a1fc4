"""Code of users in other languages, run in a process of its own.

`SandboxTransform` in `transform.py` is the base of the transforms `script`, `jq`, `vrl` and
`wasm`. `process.py` starts the process, whose program is `child.py`. The engine of a transform,
in its `engine.py`, runs the code there, and returns columns of JSON values. `cells.py` and
`results.py` convert Arrow to and from JSON.
"""
