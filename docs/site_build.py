"""Builds the documentation site into the package: `./dev docs --site`.

Zensical makes the pages. A broken link, a missing anchor and an address of another server that a
page would load fail the build. Inline scripts become files, because the server forbids them.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from site_llms import llms, llms_full
from site_pages import ROOT, Page, navigation, pages

STATIC = ROOT / "src" / "penstock" / "server" / "documentation" / "static"
WORK = ROOT / "build" / "site"
THEME = Path(__file__).parent / "theme"
STAMP = "sources.sha256"
COMPRESSED = frozenset({".html", ".js", ".css", ".json", ".txt", ".xml", ".svg", ".md", ".yaml"})
UNUSED = ("sitemap.xml", "assets/stylesheets/classic", "assets/images/favicon.png")
_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_WARNING = re.compile(r"^Warning: (.+)\n.*\[ ?(\S+\.md):(\d+):(\d+) ?\]", re.MULTILINE)
_INLINE_SCRIPT = re.compile(r"<script>(.+?)</script>", re.DOTALL)
_LOADED = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*?\bsrc=["']?(?:https?:)?//[^\s>]+"""
                     r"""|<link\b[^>]*?\bhref=["']?(?:https?:)?//[^\s>]+"""
                     r"""|@import\s+["']?(?:https?:)?//[^\s;]+"""
                     r"""|url\(\s*["']?(?:https?:)?//[^)]+\)""")  # fmt: skip


def build_site() -> int:
    """Builds the site unless it is built for its sources. Returns the exit code.

    Another process that builds it is awaited.
    """
    WORK.parent.mkdir(exist_ok=True)
    with WORK.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _build()


def _build() -> int:
    found, files = pages()
    named = digest(found, files)
    stamp = STATIC / STAMP
    if stamp.exists() and stamp.read_text() == named:
        return 0
    print("building the documentation site", file=sys.stderr)
    _write_sources(found, files)
    answer = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", "mkdocs.yml"],
        cwd=WORK, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if answer.returncode:
        problems = reported(answer.stdout + answer.stderr, found) or [answer.stdout + answer.stderr]
        print("the documentation site has problems:", *problems, sep="\n  ", file=sys.stderr)
        return 1
    site = WORK / "site"
    (site / "llms.txt").write_text(llms(found))
    (site / "llms-full.txt").write_text(llms_full(found))
    for path in UNUSED:
        shutil.rmtree(site / path) if (site / path).is_dir() else (site / path).unlink()
    _move_inline_scripts(site)
    if loaded := other_servers(site):
        print("pages would load files of other servers:", *loaded, sep="\n  ", file=sys.stderr)
        return 1
    _install(site, named)
    return 0


def digest(found: list[Page], files: dict[str, Path]) -> str:
    """Returns the SHA-256 of all that the site is made from."""
    result = hashlib.sha256()
    for page in found:
        result.update(f"{page.path} {page.title} {page.text}\0".encode())
    programs = sorted(Path(__file__).parent.glob("site_*.py"))
    theme = sorted(path for path in THEME.rglob("*") if path.is_file())
    for path in (*programs, *theme, *(files[name] for name in sorted(files))):
        result.update(f"{path.name} ".encode() + path.read_bytes())
    return result.hexdigest()


def reported(output: str, found: list[Page]) -> list[str]:
    """Returns the warnings of the generator as lines: source, line, column, message, target."""
    sources = {page.path: page for page in found}
    plain = _COLOR.sub("", output)
    lines = []
    for message, path, line, column in _WARNING.findall(plain):
        page = sources[path]
        text = page.text.splitlines()[int(line) - 1]
        target = text[int(column) - 1 :].partition(")")[0]
        lines.append(f"{page.source}:{line}: {message}: {target}")
    return lines


def other_servers(site: Path) -> list[str]:
    """Returns the elements of pages and style sheets that would load a file of another server."""
    return [
        f"{path.relative_to(site)}: {element}"
        for path in sorted(site.rglob("*"))
        if path.suffix in (".html", ".css")
        for element in _LOADED.findall(path.read_text())
    ]


def _write_sources(found: list[Page], files: dict[str, Path]) -> None:
    """Writes the project of the generator: its pages, files, theme and configuration."""
    shutil.rmtree(WORK, ignore_errors=True)
    sources = WORK / "docs"
    for page in found:
        (sources / page.path).parent.mkdir(parents=True, exist_ok=True)
        (sources / page.path).write_text(page.text)
    for path, file in files.items():
        (sources / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, sources / path)
    shutil.copytree(THEME / "assets", sources / "assets")
    settings = json.loads((THEME / "site.json").read_text())
    # JSON is YAML, and the generator reads this name.
    (WORK / "mkdocs.yml").write_text(json.dumps({**settings, "nav": navigation()}))


def _move_inline_scripts(site: Path) -> None:
    """Replaces each inline script by a file. Scripts are few: pages share them."""
    for page in site.rglob("*.html"):
        depth = len(page.relative_to(site).parts) - 1
        root = "/docs/" if page.name == "404.html" else "../" * depth

        def replace(match: re.Match[str], root: str = root) -> str:
            content = match[1].encode()
            name = f"assets/javascripts/page.{hashlib.sha256(content).hexdigest()[:8]}.js"
            (site / name).write_bytes(content)
            return f'<script src="{root}{name}"></script>'

        page.write_text(_INLINE_SCRIPT.sub(replace, page.read_text()))


def _install(site: Path, named: str) -> None:
    """Replaces the built site of the package. Texts are compressed."""
    target = STATIC.with_name("static.new")
    shutil.rmtree(target, ignore_errors=True)
    for path in sorted(site.rglob("*")):
        if path.is_file():
            copy = target / path.relative_to(site)
            copy.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix in COMPRESSED:
                content = gzip.compress(path.read_bytes(), 9, mtime=0)
                copy.with_name(f"{copy.name}.gz").write_bytes(content)
            else:
                shutil.copyfile(path, copy)
    (target / STAMP).write_text(named)
    shutil.rmtree(STATIC, ignore_errors=True)
    target.rename(STATIC)
