"""The documentation site: the built pages in `static/`, whose sources are in `docs/`.

`docs/site_build.py` writes `static/`, which is not in git, and is part of the wheel and the sdist.
"""
