"""Looks at the site that was built: every link leads to a file and a place in it, nothing is loaded from elsewhere, and
the reference has all methods.

``python docs/check_site.py build/docs``, the last step of ``make docs``.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import bellcrank

#: what browsers fetch by themselves: tag and attribute
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("link", "href"), ("source", "src"), ("object", "data")}


class Links(HTMLParser):
    """Where a page leads to, what it loads, and the names of places in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.leads: set[str] = set()
        self.loads: set[str] = set()
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.places.add(value)
            elif (tag, name) in LOADED and ("rel", "canonical") not in attributes:
                self.loads.add(value)
            elif (tag, name) == ("a", "href"):
                self.leads.add(value)


def faults(root: Path) -> list[str]:
    """What is wrong with the site, one line each."""
    single = root / "_static" / "gallery"  # animations are pages by themselves, with a policy that keeps them offline
    pages = {p.resolve(): Links(p.read_text(encoding="utf-8")) for p in root.rglob("*.html") if single not in p.parents}
    found = []
    for page, links in pages.items():
        name = page.relative_to(root.resolve())
        found += [f"{name}: loads {url}" for url in links.loads if urlsplit(url).netloc]
        for url in links.loads | links.leads:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not target.is_file():
                found.append(f"{name}: {url} is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                found.append(f"{name}: {url}: no such place")
    if not (root / "searchindex.js").is_file():
        found.append("there is no search index")
    return found + unlisted({place for links in pages.values() for place in links.places})


def unlisted(places: set[str]) -> list[str]:
    """Public names of the classes that everybody uses, inherited ones included, that have no entry on any page."""
    return [f"the reference has no entry for bellcrank.{kind.__name__}.{name}"
            for kind in (bellcrank.System, bellcrank.Mechanism) for name in dir(kind)
            if not name.startswith("_") and f"bellcrank.{kind.__name__}.{name}" not in places]


def main() -> None:
    wrong = faults(Path(sys.argv[1]))
    print("\n".join(wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
