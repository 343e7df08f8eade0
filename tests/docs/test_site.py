"""The manual as it is built by `make docs`: whatever is linked is there, and the reference has come.

Zensical says nothing of a plug-in that it does not know, so what was built is read.
"""

from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urljoin, urlparse

import pytest
from killing import ROOT

import probes
from probes.__main__ import COMMANDS

SITE = ROOT / "build" / "site"

pytestmark = pytest.mark.skipif(
    not (SITE / "index.html").exists(), reason="no site; `make docs` builds it"
)


class Page(HTMLParser):
    """The addresses and anchors of a page, and its text."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.text = set(), set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        self.links |= {given[name] for name in ("href", "src") if given.get(name)}

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def pages():
    """Every page by its path in the site; not the one for addresses that do not exist."""
    found = (path for path in SITE.rglob("*.html") if path.name != "404.html")
    return {path.relative_to(SITE).as_posix(): Page(path) for path in found}


def test_every_link_leads_to_a_page_and_a_place_in_it(pages):
    checked = 0
    for path, page in pages.items():
        for link in page.links:
            if urlparse(link).scheme or urlparse(link).netloc:
                continue
            target, anchor = urldefrag(urljoin(f"/{path}", link))
            target = unquote(target).lstrip("/") or "index.html"
            assert (SITE / target).exists(), f"{path}: {link}"
            if anchor and target in pages:
                assert unquote(anchor) in pages[target].anchors, f"{path}: {link}"
            checked += 1
    assert checked > 1000


def test_nothing_is_loaded_from_elsewhere(pages):
    for path in pages:
        html = (SITE / path).read_text(encoding="utf-8")
        assert "fonts.googleapis" not in html, path


def test_every_public_name_and_command_is_described(pages):
    names = pages["docs/reference/api.html"].anchors
    described = {anchor.rpartition(".")[2] for anchor in names if anchor.startswith("probes.")}
    assert {*probes.__all__} <= described
    text = "".join(pages["docs/reference/api.html"].text)
    assert "Probe one or more models." in text
    assert ":::" not in text
    commands = "".join(pages["docs/reference/command-line.html"].text)
    for name in COMMANDS:
        assert f"usage: python -m probes {name} " in commands


def test_the_gallery_has_pictures_of_every_kind(pages):
    pictures = {x.removesuffix(".svg") for x in pages["docs/reference/gallery.html"].links}
    every = {"heatmap", "curves", "ranks", "isotropy", "cka", "context", "heads", "mix", "tree"}
    assert every <= pictures


def test_every_page_is_in_the_navigation(pages):
    """And so can be found without a search."""
    listed = {unquote(urljoin("/index.html", x)).lstrip("/") for x in pages["index.html"].links}
    for path in pages:
        assert path in listed, path
