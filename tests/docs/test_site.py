"""The documentation site has all pages, no broken link, and nothing of other servers."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "src" / "penstock" / "server" / "documentation" / "static"
sys.path.insert(0, str(ROOT / "docs"))

import site_build  # noqa: E402
import site_llms  # noqa: E402
from site_pages import Page, pages, placed, site_path  # noqa: E402

pytestmark = [pytest.mark.docs, pytest.mark.slow]


@pytest.fixture(scope="module")
def built() -> Path:
    """The built site. CI has built it before the tests."""
    words = [sys.executable, str(ROOT / "docs" / "build.py"), "--site"]
    answer = subprocess.run(words, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return STATIC


def text(built: Path, name: str) -> str:
    return gzip.decompress((built / f"{name}.gz").read_bytes()).decode()


def test_the_site_has_all_pages(built: Path) -> None:
    found, _ = pages()
    assert {page.source for page in found} == {
        "README.md", "CONTRIBUTING.md", "CHANGELOG.md",
        *(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
        *(str(path.relative_to(ROOT)) for path in ROOT.glob("examples/*/README.md")),
    }  # fmt: skip
    for page in found:
        assert (built / page.url / "index.html.gz").is_file(), page.url


def test_pages_run_no_inline_script_and_load_nothing_from_elsewhere(built: Path) -> None:
    site = [path.relative_to(built) for path in built.rglob("*.html.gz")]
    assert len(site) > 40
    for path in site:
        content = text(built, str(path).removesuffix(".gz"))
        scripts = re.findall(r"<script([^>]*)>", content)
        assert scripts and all("src=" in each or "application/json" in each for each in scripts)
        loaded = re.findall(r"<(?:script|img|link)[^>]*(?:src|href)=\"([^\"]+)\"", content)
        assert not [each for each in loaded if "//" in each], path


def test_the_search_has_every_section(built: Path) -> None:
    index = json.loads(text(built, "search.json"))
    places = {item["location"] for item in index["items"]}
    assert "howto/kafka/#read" in places
    assert len(places) > 500


def test_errors_have_anchors(built: Path) -> None:
    assert 'id="unknown-column"' in text(built, "reference/errors/index.html")


def test_llms(built: Path) -> None:
    short, full = text(built, "llms.txt"), text(built, "llms-full.txt")
    assert short.startswith("# Penstock\n\n> Penstock is declarative stream processing")
    for section in placed():
        assert f"\n## {section}\n" in short
    for page in pages()[0]:
        assert f"](/docs/{page.url}): " in short
        assert f"<!-- /docs/{page.url} -->" in full


@pytest.mark.parametrize("link", ["none.md", "#none", "other.md#none"])
def test_a_broken_link_fails(
    link: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = [
        Page("docs/a.md", "index.md", "A", f"# A\n\nA line.\n\n[broken]({link})\n"),
        Page("docs/other.md", "other.md", "Other", "# Other\n"),
    ]
    monkeypatch.setattr(site_build, "STATIC", tmp_path / "static")
    monkeypatch.setattr(site_build, "WORK", tmp_path / "work")
    monkeypatch.setattr(site_build, "pages", lambda: (small, {}))
    monkeypatch.setattr(site_build, "navigation", lambda: [{"A": "index.md"}])
    assert site_build.build_site() == 1
    printed = capsys.readouterr().err
    assert "docs/a.md:5: " in printed and link.partition("#")[2] in printed
    assert not (tmp_path / "static").exists()


def test_files_of_other_servers_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<img src="https://example.com/a.png"><a href="https://x.y">')
    (tmp_path / "a.css").write_text("@import 'https://example.com/a.css'; b {color: red}")
    found = site_build.other_servers(tmp_path)
    assert [each.partition(":")[0] for each in found] == ["a.css", "a.html"]


def test_places_and_first_sentences() -> None:
    assert site_path("README.md") == "index.md"
    assert site_path("docs/howto/kafka.md") == "howto/kafka.md"
    assert site_path("examples/nexmark/README.md") == "examples/nexmark.md"
    described = "# A\n\n```sh\nx\n```\n\nReads [files](a.md) of\na topic. More.\n"
    assert site_llms.summary(described) == "Reads files of a topic."
