"""Every link of every Markdown page leads somewhere. Needs neither mdBook nor the network."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Pages of docs/ name files outside of it by these addresses: the site holds docs/ alone.
REPOSITORY = re.compile(r"https://(?:github\.com/garlic-ann/garlic/(?:blob|tree)|raw\.githubusercontent\.com/garlic-ann/garlic)/main/")
FOLDERS = ("adapters", "bench", "docs", "paper", "python")

PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


def prose(text):
    """The text without code: fenced blocks and what stands between backticks."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)


def links(text):
    """The targets of all links and images."""
    return re.findall(r"\]\(<?([^)\s>]+)>?\)", prose(text))


def anchors(page):
    """What a link may name behind `#`: headings as git hosts and mdBook number them, identifiers in HTML."""
    text = page.read_text(encoding="utf-8")
    if page.suffix != ".md":
        return set(re.findall(r'\bid="([^"]+)"', text))
    found, seen = set(), {}
    for heading in re.findall(r"^#{1,6} +(.+?) *$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        found.add(f"{slug}-{count}" if count else slug)
    return found


def problem(page, target):
    """What is wrong with a link of a page, or nothing."""
    if inside := REPOSITORY.match(target):
        path, base = target[inside.end() :], ROOT
    elif re.match(r"[a-z]+:", target):
        return None
    else:
        path, base = target, page.parent
    path, _, anchor = path.partition("#")
    place = (base / path).resolve() if path else page
    if not place.exists():
        return f"{target}: there is no such file"
    if not inside and DOCS in page.parents and DOCS not in place.parents:
        return f"{target}: leads out of docs/; use the address of the repository"
    if anchor and anchor not in anchors(place):
        return f"{target}: there is no such heading"
    return None


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name):
    page = ROOT / name
    wrong = [p for target in links(page.read_text(encoding="utf-8")) if (p := problem(page, target))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "docs/SUMMARY.md"])
def test_pages_begin_with_their_only_title(name):
    text = re.sub(r"^```.*?^```$", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.M | re.S)
    assert text.startswith("# ")
    assert len(re.findall(r"^# ", text, re.M)) == 1


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("docs/research/paper/")])
def test_code_stands_in_fences(name):
    # mdBook, git hosts and rustdoc take four spaces after an empty line for code of an unknown language.
    text = re.sub(r"^```.*?^```$", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.M | re.S)
    assert not re.search(r"\n\n    \S", text)


def test_the_table_of_contents_lists_every_page_once():
    listed = links((DOCS / "SUMMARY.md").read_text(encoding="utf-8"))
    there = [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if page.name != "SUMMARY.md"]
    assert sorted(listed) == sorted(there)


@pytest.mark.parametrize(
    "text, wrong",
    [
        ("[x](guide/none.md)", "no such file"),
        ("[x](README.md#none)", "no such heading"),
        ("[x](../Makefile)", "leads out of docs/"),
        ("[x](https://github.com/garlic-ann/garlic/blob/main/none)", "no such file"),
        ("![x](none.svg)", "no such file"),
        ("[x](#none)", "no such heading"),
    ],
)
def test_wrong_links_are_found(text, wrong):
    page = DOCS / "README.md"
    assert wrong in problem(page, *links(text))


def test_links_in_code_are_no_links():
    assert links("`[a](b)` and\n\n```sh\n[c](d)\n```\n\n[e `f`](g)") == ["g"]
