"""The web console: the built files in `static/`, whose sources are in `console/` of the repository.

`console/build.py` writes `static/`, which is not in git, and is part of the wheel and the sdist.
"""
