"""That no test can hang, whoever started it: children and tests end in time, and an interrupt reaches them."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import children

HERE = Path(__file__).resolve().parent
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")

@pytest.mark.usefixtures("signals_ignored")
def test_children_have_default_handlers() -> None:
    code = """
        import signal
        print(signal.getsignal(signal.SIGINT) is signal.default_int_handler,
              signal.getsignal(signal.SIGHUP) is signal.SIG_DFL, signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    """
    assert children.run_code(code).stdout == "True True set()\n"


def test_children_are_killed_with_all_they_started() -> None:
    code = """
        import subprocess, sys, time
        inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print(inner.pid, flush=True)
        time.sleep(600)
    """
    with children.started([sys.executable, "-c", re.sub("^ +", "", code, flags=re.M)], limit=3.0) as child:
        assert child.stdout is not None
        inner = int(child.stdout.readline())
        begun = time.monotonic()
        assert child.stdout.read() == "" and time.monotonic() - begun < 30.0  # both hold the pipe
        assert child.wait(30.0) == -signal.SIGKILL
    for _ in range(100):  # its new parent may take a moment
        if not Path(f"/proc/{inner}").exists() or "Z" in Path(f"/proc/{inner}/stat").read_text().split()[2]:
            return
        time.sleep(0.1)
    pytest.fail("the grandchild lives on")


def test_a_child_that_takes_too_long_is_an_error() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        children.run_code("import time; time.sleep(600)", limit=0.5)


def test_children_cannot_fill_the_disk(tmp_path: Path) -> None:
    code = "import sys\nwith open(sys.argv[1], 'wb') as f: f.truncate(2**29)"
    done = children.run_code(code, str(tmp_path / "big"))
    assert done.returncode == 1 and "File too large" in done.stderr


def test_all_children_are_started_by_the_helper() -> None:
    """Programs started in another way inherit ignored signals and have no limit."""
    ways = re.compile(r"subprocess\.(run|call|check_\w+|Popen\()|os\.(system|popen|spawn\w*|fork)\(")
    found = {path.name for path in HERE.glob("*.py") if ways.search(path.read_text(encoding="utf-8"))}
    assert found <= {"children.py", "models.py", Path(__file__).name}


#: how tests tell programs to end
TELLING = re.compile(r"SIGINT|SIGHUP|send_signal")


def test_interrupts_where_they_are_ignored() -> None:
    """Tests that interrupt do so in a process such as `nohup make test` starts, in every run."""
    found = 0
    for path in sorted(HERE.glob("test_*.py")):
        if path.name == Path(__file__).name or not TELLING.search(path.read_text(encoding="utf-8")):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        texts = {node.name: ast.unparse(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
        everywhere = "pytestmark = pytest.mark.usefixtures('signals_ignored')" in ast.unparse(tree)
        for name, text in texts.items():
            if name.startswith("test_") and TELLING.search(text):
                assert everywhere or "usefixtures('signals_ignored')" in text, f"{path.name}: {name}"
                found += 1
    assert found >= 5


@pytest.mark.usefixtures("signals_ignored")
def test_pytest_runs_where_signals_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("import children\n\ndef test_one():\n    code = 'import os, signal; "
                                          "os.kill(os.getpid(), signal.SIGINT)'\n"
                                          "    assert children.run_code(code).returncode == -signal.SIGINT\n"
                                          "import signal\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    code = """
        import signal, sys
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        import pytest
        sys.exit(pytest.main(["-p", "conftest", "-p", "no:cacheprovider", "test_one.py"]))
    """
    done = children.run_code(code, cwd=tmp_path, env={"PYTHONPATH": str(HERE)})
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("hang", ("while True: pass", "import re; re.match('(a*)*b', 'a' * 99)",
                                  "import time; time.sleep(600)"))
def test_a_test_that_hangs_ends(hang: str, tmp_path: Path) -> None:
    """In Python, in a library that keeps Python's lock, and waiting: with the name of the function that hung."""
    (tmp_path / "test_hang.py").write_text(f"def test_that_hangs():\n    {hang}\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = children.run([sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "test_hang.py"],
                        cwd=tmp_path, env={"PYTHONPATH": str(HERE), "BELLCRANK_TEST_LIMIT": "1"})
    assert done.returncode == 1 and "Timeout" in done.stderr and "test_that_hangs" in done.stderr, done.stderr
