"""That the tests of `make quick` touch every package, and that the list names tests that exist."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import bellcrank as bc
import children
import quick

HERE = Path(__file__).resolve().parent
ROOT = Path(bc.__file__).parent
#: folders with code
PACKAGES = {str(p.relative_to(ROOT)) for p in (ROOT, *ROOT.rglob("*"))
            if any(re.search(r"^def |^class ", f.read_text(encoding="utf-8"), re.M) for f in p.glob("*.py"))}

#: runs one test per package and notes, for each, which packages have functions that were called, until all that it
#: stands for are
WATCHING = """
    import json, os, sys
    from pathlib import Path
    import bellcrank, pytest

    root = str(Path(bellcrank.__file__).parent)
    wanted = {name: set(packages) for name, packages in json.loads(sys.argv[2]).items()}
    found = {}

    class Watch:
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_call(self, item):
            called = found.setdefault(item.nodeid.split("[")[0], set())
            missing, seen = wanted[item.nodeid.split("[")[0].removeprefix("tests/")] - called, set()
            def note(frame, event, argument):
                code = frame.f_code
                if event != "call" or code in seen:
                    return
                seen.add(code)
                if code.co_name != "<module>" and code.co_filename.startswith(root):
                    called.add(os.path.relpath(os.path.dirname(code.co_filename), root))
                    if missing <= called:
                        sys.setprofile(None)
            sys.setprofile(note)
            try:
                return (yield)
            finally:
                sys.setprofile(None)

    code = pytest.main(["-p", "no:cacheprovider", "-p", "no:xdist", *wanted], [Watch()])
    Path(sys.argv[1]).write_text(json.dumps({name: sorted(called) for name, called in found.items()}))
    sys.exit(code)
"""


def test_every_package_has_quick_tests() -> None:
    assert {name or "." for name in quick.QUICK} == PACKAGES


@pytest.mark.parametrize("entry", quick.chosen())
def test_the_list_names_what_is_there(entry: str) -> None:
    file, *test = entry.split("::")
    path = HERE.parent / file
    assert path.exists() and all(f"def {name}(" in path.read_text(encoding="utf-8") for name in test)


def test_quick_tests_call_the_packages(tmp_path: Path) -> None:
    """One short test of each package's list, watched; the outermost package only hands on what others have."""
    first = {name: entries[0] for name, entries in quick.QUICK.items() if name}
    wanted: dict[str, list[str]] = {}
    for name, entry in first.items():
        wanted.setdefault(entry, []).append(name)
    done = children.run_code(WATCHING, str(tmp_path / "called.json"), json.dumps(wanted), cwd=HERE)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    called = {name.removeprefix("tests/"): packages for name, packages in
              json.loads((tmp_path / "called.json").read_text(encoding="utf-8")).items()}
    assert not {name: entry for name, entry in first.items() if name not in called.get(entry, ())}, called
    assert sys.getprofile() is None
