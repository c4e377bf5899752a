"""The documentation site holds together: every page is reached, every link leads somewhere, every public name is there.

`make docs` builds it with Sphinx, where warnings are errors; this looks at the sources alone, in no time.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import bellcrank as bc
from pages import DOCS

ROOT = DOCS.parent
PAGES = sorted(DOCS.rglob("*.md"))
OTHERS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / ".github").rglob("*.md"))]


def without_code(path: Path) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def anchors(path: Path) -> set[str]:
    """Of headings, as sites of code write them: small letters, no punctuation, hyphens between words."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
            for title in re.findall(r"^#{1,4} +(.+?)\s*$", text, re.M)}


def listed(page: Path) -> set[Path]:
    """Pages in the tables of contents of a page; patterns are not used."""
    trees = re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    entries = [line.strip() for tree in trees for line in tree.splitlines() if line.strip() and line[0] != ":"]
    return {(page.parent / f"{entry}.md").resolve() for entry in entries}


def test_every_page_is_in_one_table_of_contents() -> None:
    found = [page for source in PAGES for page in listed(source)]
    made = {(DOCS / "gallery" / "index.md").resolve()}  # by `make docs`
    assert len(found) == len(set(found))
    assert set(found) - made == {page.resolve() for page in PAGES} - {(DOCS / "index.md").resolve()} - made


def test_no_two_pages_have_the_same_name() -> None:
    names = [page.name for page in PAGES if page.name != "index.md"]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """To pages and headings, to pictures and files; relative, so that they hold in a clone as on the site."""
    for target in re.findall(r"\]\(<?([^)>\s]+)>?(?: \"[^\"]*\")?\)", without_code(page)):
        name, _, heading = target.partition("#")
        if re.match(r"[a-z]+:", target):
            assert target.startswith("https://"), target
            continue
        place = (page.parent / name).resolve() if name else page
        if place == (DOCS / "gallery" / "index.md").resolve():
            continue
        assert place.exists(), f"{page.name}: {target}"
        if heading and place.suffix == ".md" and not heading.startswith("bellcrank."):
            assert heading in anchors(place), f"{page.name}: {target}"


def test_every_public_name_has_its_place_in_the_reference() -> None:
    """Add a new one to a page of docs/reference/api."""
    text = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference" / "api").glob("*.md")
                   if page.name != "answers.md")
    written = re.findall(r"auto(?:class|function|exception|module):: bellcrank\.([\w.]+)", text)
    assert len(written) == len(set(written))
    wanted = {name for name in bc.__all__ if name != "__version__"} - {"analyze", "examples"}
    wanted |= {f"analyze.{name}" for name in bc.analyze.__all__ if name not in bc.__all__}
    wanted |= {f"examples.{name}" for name in bc.examples.__all__}
    assert set(written) == wanted


def test_the_reference_has_inherited_methods() -> None:
    """Most methods of these classes are those of their bases. `docs/check_site.py` counts entries of the built site;
    this looks at what decides it: pages ask for them, and no default takes that back."""
    config = re.search(r"^autodoc_default_options = .*$", (DOCS / "conf.py").read_text(encoding="utf-8"), re.M)
    assert config is not None and "inherited-members" not in config[0]
    text = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference" / "api").glob("*.md"))
    for kind in (bc.System, bc.Mechanism):
        inherited = {name for name in dir(kind) if not name.startswith("_")} - set(vars(kind))
        assert len(inherited) > 20
        assert all(inspect.getdoc(getattr(kind, name)) for name in inherited if hasattr(kind, name))
        assert f"autoclass:: bellcrank.{kind.__name__}\n   :inherited-members: object" in text


def test_the_command_line_has_all_commands() -> None:
    from cli_calls import call

    page = (DOCS / "reference" / "command_line.md").read_text(encoding="utf-8")
    commands = re.findall(r"^  ([a-z-]+)  +[A-Z]", call("--help").output.partition("Commands:")[2], re.M)
    assert len(commands) >= 11 and all(f"`{name}`" in page for name in commands)


def test_the_table_of_benchmarks_has_all_scripts() -> None:
    page = (DOCS / "reference" / "benchmarks.md").read_text(encoding="utf-8")
    scripts = {file.name for file in (ROOT / "benchmarks").glob("*.py")} - {"timing.py"}
    assert scripts == set(re.findall(r"`(\w+\.py)`", page.partition("| script |")[2].partition("\n\n")[0]))


def test_nothing_on_the_site_comes_from_the_network() -> None:
    config = (DOCS / "conf.py").read_text(encoding="utf-8")
    assert "mathjax" not in config and "intersphinx" not in config and "://" not in config
    assert 'html_math_renderer = "mathml"' in config


def test_the_version_is_the_same_everywhere() -> None:
    """In the code, in CITATION.cff, and at the top of the changelog; it is released by tagging that."""
    cff = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", cff, re.M) == [bc.__version__]
    assert re.findall(r"^## ([\d.]+)", changes, re.M)[0] == bc.__version__
    assert f"version = {{{bc.__version__}}}" in bc.cite()
    title = "Bellcrank: dynamics of machines made of linked bodies"
    assert f'title: "{title}"' in cff and title in bc.cite()


def test_ci_runs_what_is_promised() -> None:
    """Linux, macOS and Windows; the versions of Python that pyproject.toml names; the command that README gives."""
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    assert all(f"{name}-latest" in workflow for name in ("ubuntu", "macos", "windows"))
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    versions = re.findall(r"Python :: (3\.\d+)", project)
    assert versions[0] == "3.11" and f"python: {str(versions).replace(chr(39), chr(34))}" in workflow
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")
