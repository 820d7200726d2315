"""The site that `make docs` makes of the pages."""

import importlib.machinery
import importlib.util
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VOID = {"meta", "img", "br", "hr", "link"}


class Reader(HTMLParser):
    """Titles, anchors and links of a page; every element must end where it should."""

    def __init__(self, path):
        super().__init__()
        self.links, self.ids, self.open, self.words = [], [], [], {}
        self.feed(path.read_text(encoding="utf-8"))
        assert not self.open, f"{path.name}: {self.open} not closed"

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.links += [given[key] for key in ("href", "src") if key in given]
        self.ids += [given["id"]] if "id" in given else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        for tag in self.open:
            self.words[tag] = self.words.get(tag, "") + data


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, str(ROOT / "tools/docs"), str(out)], check=True, capture_output=True)
    return out, {path.name: Reader(path) for path in sorted(out.glob("*.html"))}


def test_every_page_of_docs_is_there_with_a_title(site):
    _, pages = site
    assert {"index.html", "architecture.html"} | {f"{p.stem}.html" for p in (ROOT / "docs").glob("*.md")} <= set(pages)
    titles = [page.words["title"] for page in pages.values()]
    assert all(title.strip() for title in titles) and len(set(titles)) == len(titles)
    assert all(page.words["h1"].strip() for page in pages.values())


def test_every_internal_link_resolves(site):
    out, pages = site
    seen = 0
    for name, page in pages.items():
        assert len(set(page.ids)) == len(page.ids), name
        for link in page.links:
            if link.startswith("https://"):
                continue
            path, _, anchor = link.partition("#")
            assert not path or (out / path).is_file(), f"{name}: {link}"
            assert not anchor or anchor in pages[path or name].ids, f"{name}: {link}"
            seen += 1
    assert seen > len(pages) ** 2


def test_no_markdown_is_left(site):
    _, pages = site
    for name, page in pages.items():
        text = page.words["main"].replace(page.words.get("pre", ""), "")
        assert "```" not in page.words["main"] and "|---" not in text and "\0" not in text, name
    # The columns of the quickstart.
    assert all(language in pages["quickstart.html"].words["figcaption"] for language in ("Rust", "Command line", "Python"))


@pytest.fixture(scope="module")
def page():
    loader = importlib.machinery.SourceFileLoader("docs_tool", str(ROOT / "tools/docs"))
    spec = importlib.util.spec_from_loader("docs_tool", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return lambda: module.Page("docs/x.md", {"README.md": "index.html", "docs/cli.md": "cli.html"})


@pytest.mark.parametrize(
    "text, shown",
    [
        ("# A `b` c", '<h1 id="a-b-c">A <code>b</code> c</h1>'),
        ("one\ntwo", "<p>one two</p>"),
        ("a < b **c** *d* 2 * 3 * 4", "<p>a &lt; b <strong>c</strong> <em>d</em> 2 * 3 * 4</p>"),
        ("`*a* <b> [c](d)`", "<p><code>*a* &lt;b&gt; [c](d)</code></p>"),
        ("[x `y`](cli.md#z) [r](../README.md)", '<p><a href="cli.html#z">x <code>y</code></a> <a href="index.html">r</a></p>'),
        ("[p](https://example.org/a_b*c*)", '<p><a href="https://example.org/a_b*c*">p</a></p>'),
        ("[folder](../python)", "<p>folder</p>"),
        ("- a\n  b\n- c\n\nd", "<ul>\n<li>a b</li>\n<li>c</li>\n</ul>\n<p>d</p>"),
        ("1. a\n2. b", "<ol>\n<li>a</li>\n<li>b</li>\n</ol>"),
        ("    x <y>\n\n    z", "<pre><code>x &lt;y&gt;\n\nz</code></pre>"),
        ("```sh\na\n\nb\n```", "<figure><figcaption>Command line</figcaption><pre><code>a\n\nb\n</code></pre></figure>"),
    ],
)
def test_blocks(page, text, shown):
    assert page().convert(text) == shown


def test_tables(page):
    shown = page().convert("| a | b |\n|---|---:|\n| `x\\|y` | 2 \\| 3 |")
    assert "<code>x|y</code>" in shown and '<td style="text-align: right">2 | 3</td>' in shown


def test_a_link_to_nothing_is_an_error(page):
    for text in ("[x](missing.md)", "![x](missing.svg)", "[x](../../outside)"):
        with pytest.raises(SystemExit, match="there is no"):
            page().convert(text)
    with pytest.raises(SystemExit, match="does not end"):
        page().convert("```sh\nx")
