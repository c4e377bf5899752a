# One environment in .venv; `make demo` and `make test` do everything on a fresh machine.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo models test check benchmark clean

.venv/made: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

.venv/made-test: .venv/made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,peers]"
	touch $@

demo: .venv/made
	$(BIN)/python examples/01_robot_arm.py
	$(BIN)/python examples/02_closed_loops.py
	$(BIN)/python examples/03_simulate.py

models: .venv/made
	$(BIN)/python tests/models.py

test: .venv/made-test check
	$(BIN)/python tests/models.py --optional
	$(BIN)/python -m pytest -n auto

check: .venv/made-test
	$(BIN)/ruff check .
	$(BIN)/mypy

benchmark: .venv/made-test
	$(BIN)/python benchmarks/trees.py
	$(BIN)/python benchmarks/loops.py
	$(BIN)/python benchmarks/simulate.py

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
