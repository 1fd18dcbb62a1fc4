"""Functions in JavaScript and TypeScript.

`typescript.py` removes types from the code, `return_type.py` reads the columns from them, and
`engine.py` runs the code in V8 in a sandbox process with `driver.js`.
"""
