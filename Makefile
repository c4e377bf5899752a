# One environment in .venv; `make demo` and `make test` do everything on a fresh machine.
PYTHON ?= python3
BIN := .venv/bin
PIP := -m pip install --quiet --disable-pip-version-check
# another PYTHON makes the environment anew
MADE := .venv/made-$(shell $(PYTHON) -c "import sys; print('%d.%d' % sys.version_info[:2])")
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal

.PHONY: demo models test test-all quick test-wheel test-lowest check viewer benchmark docs pictures screenshots clean

$(MADE): pyproject.toml
	$(PYTHON) -m venv $(if $(wildcard $(MADE)),,--clear) .venv
	$(BIN)/python $(PIP) -e .
	touch $@

$(MADE)-test: $(MADE)
	$(BIN)/python $(PIP) -e ".[test,peers]"
	touch $@

demo: $(MADE)
	$(BIN)/python examples/01_robot_arm.py
	$(BIN)/python examples/02_closed_loops.py
	$(BIN)/python examples/03_simulate.py

models: $(MADE)
	$(BIN)/python tests/models.py

test: $(MADE)-test check
	$(BIN)/python tests/models.py --optional
	$(PYTEST)

# every case of large tables, of which an everyday run takes a part: tests/everyday.py
test-all: $(MADE)-test check
	$(BIN)/python tests/models.py --optional
	$(PYTEST) --all

# a part of the tests that touches every package: tests/quick.py says which
quick: $(MADE)-test
	$(PYTEST) $$($(BIN)/python tests/quick.py)

# all tests against the wheel as users install it, in an environment of its own
test-wheel: $(MADE)-test
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/wheel .
	$(PYTHON) -m venv --clear build/wheel/venv
	build/wheel/venv/bin/python $(PIP) "$$(echo build/wheel/*.whl)[test,peers]"
	build/wheel/venv/bin/python -m pytest -n auto --dist worksteal

# what depends on other packages, with the lowest versions of them that pyproject.toml allows (Python 3.11 has them all)
LOWEST := readme cli cli_files native native_errors results damaged_results damaged_stores damaged_matrices sweep plots \
          flexible_bodies loops
test-lowest:
	$(PYTHON) -m venv --clear build/lowest
	build/lowest/bin/python $(PIP) uv
	build/lowest/bin/uv pip install --quiet --python build/lowest/bin/python --resolution lowest-direct \
	    --only-binary :all: -r pyproject.toml --extra sweep --extra mesh \
	    "pytest>=8" "pytest-randomly>=3.15" "hypothesis>=6.100" "jsonschema>=4"
	build/lowest/bin/python $(PIP) --no-deps -e .
	build/lowest/bin/python -m pytest -o filterwarnings=default $(LOWEST:%=tests/test_%.py) \
	    --deselect tests/test_native.py::test_the_published_schema_is_up_to_date  # other words of other versions

$(MADE)-docs: $(MADE)
	$(BIN)/python $(PIP) -e ".[docs]"
	touch $@

# the site, in build/docs: open build/docs/index.html. Warnings are errors, broken links too; no network is needed
docs: $(MADE)-docs
	$(BIN)/python docs/make_gallery.py
	$(BIN)/python -m sphinx -W --keep-going -n -q -E -j auto -b html docs build/docs
	$(BIN)/python docs/check_site.py build/docs

# pictures of the tutorials, drawn anew by the code of their pages
pictures: $(MADE)
	$(BIN)/python docs/make_pictures.py

# screenshots of the viewer, taken by the browser of the tests
screenshots: $(MADE)-test
	$(BIN)/python docs/make_screenshots.py

check: $(MADE)-test
	$(BIN)/ruff check .
	$(BIN)/mypy

# the page of the viewer, bundled; needs npm, which users do not
viewer:
	cd viewer && npm ci --no-audit --no-fund && npm run build

benchmark: $(MADE)-test
	$(BIN)/python benchmarks/trees.py
	$(BIN)/python benchmarks/loops.py
	$(BIN)/python benchmarks/simulate.py

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
