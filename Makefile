# Each target makes .venv on first use and reuses it afterwards; nothing is installed outside it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
JOBS   ?= 2
export OMP_WAIT_POLICY ?= PASSIVE
export MALLOC_MMAP_THRESHOLD_ ?= 2147483647
export MALLOC_TRIM_THRESHOLD_ ?= 2147483647

.PHONY: docs docs-check bench test lint format types unit test-slow test-browser test-real test-ray dist parking speed architectures clean

bench: $(STAMP)                 ## the PTTA benchmark on the embedded data set
	$(BIN)/grotta bench

test: lint types unit           ## everything CI runs: lint, format, import direction, types, tests, doctests

$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "grotta needs Python 3.11 or newer: 'make PYTHON=/path/to/python3 ...'" >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP)
	$(BIN)/mypy

unit: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n $(JOBS) --dist worksteal

test-slow: $(STAMP)             ## long checks
	$(BIN)/pytest -q -m slow

test-browser: $(STAMP)          ## pages in a real Chromium: needs chromium and chromedriver
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || { echo "chromium and chromedriver are missing: 'apt-get install chromium chromium-driver'" >&2; exit 2; }
	$(BIN)/pytest -q -m browser

test-real: $(STAMP)             ## checks on real data: GROTTA_DATA=/path/to/data make test-real
	$(BIN)/pytest -q -m real

test-ray: $(STAMP)              ## checks on a real two-node Ray cluster on loopback
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ray]'
	$(BIN)/pytest -q -m distributed

dist: $(STAMP)                  ## the source distribution and the wheel, in dist/, and the checks on them
	$(BIN)/python -m build
	$(BIN)/pytest -q -m slow tests/test_release.py

parking: $(STAMP)               ## real cameras in recorded order, and docs/parking.md: GROTTA_DATA=/path/to/data make parking
	$(BIN)/grotta reproduce parking --out runs/parking
	$(BIN)/grotta reproduce parking-all-weather --out runs/parking
	$(BIN)/python scripts/parking_page.py runs/parking

docs: $(VENV)/.docs             ## the documentation site, in build/docs/index.html; a warning or a broken link is an error
	$(BIN)/sphinx-build -q -W --keep-going -b html docs build/docs

docs-check: docs                ## the site, its links and every code block, the long one of the README included
	OMP_NUM_THREADS=1 $(BIN)/pytest -q tests/docs tests/test_readme.py -m 'slow or not slow'

$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

speed: $(STAMP)                 ## speed and memory, as ratios
	$(BIN)/python -m benchmarks

architectures: $(STAMP)         ## docs/architectures.md: every method on published architectures
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(VENV)/architectures -r benchmarks/architectures.txt
	PYTHONPATH=$(VENV)/architectures $(BIN)/python -m benchmarks.architectures

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build dist src/*.egg-info
