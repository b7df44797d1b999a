# make demo, make test: on a bare machine with Python 3.11 or newer; each installs what it needs into .venv and no more.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT := out
# --no-compile: half of pip's time goes into modules that nobody imports; those that somebody does are compiled once, at their first import
unexport PYTHONDONTWRITEBYTECODE
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable

.PHONY: setup demo test check coverage docs release format bench stress adversary clean

setup: $(VENV)/.dev

# .demo: drawing and training. .test: every extra and what the tests use. .dev: linters and type checker besides. .docs: the site's tools.
$(VENV)/.demo $(VENV)/.test $(VENV)/.dev $(VENV)/.docs: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) '.[$(patsubst .%,%,$(@F))]'
	touch $@

demo: $(VENV)/.demo
	$(BIN)/parasol paper helmholtz --preset few --out $(OUT)/demo

test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n auto

# lines that no test runs, as $(OUT)/coverage/index.html; what runs in other processes (workers, servers, examples) does not count
coverage: setup
	mkdir -p $(OUT)
	COVERAGE_CORE=$$($(BIN)/python -c "import sys; print('sysmon' if sys.version_info >= (3, 12) else 'ctrace')") COVERAGE_FILE=$(OUT)/.coverage $(BIN)/python -m pytest -n auto --cov=src --cov-report=html:$(OUT)/coverage --cov-report=term:skip-covered

# the site, in docs/_build/html; tutorials whose text has changed are run, the results of the others are in docs/tutorials
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --jobs 2 docs docs/_build/html
	$(BIN)/python docs/_ext/links.py docs/_build/html
	$(BIN)/python -m doctest -o ELLIPSIS -o NORMALIZE_WHITESPACE docs/_ext/mathml.py docs/_ext/typography.py

# wheel and sdist, each installed into bare environments of the Pythons that are there and tried
release: setup
	rm -rf $(OUT)/dist
	$(BIN)/python -m build --outdir $(OUT)/dist .
	$(BIN)/python tests/bare_install.py $(OUT)/dist

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# side by side with a peer that compiles from source (about two minutes), so it has an environment of its own
bench: setup
	$(PYTHON) -m venv $(VENV)-peers
	$(VENV)-peers/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[peers]'
	$(VENV)-peers/bin/python benchmarks/nodes.py
	$(VENV)-peers/bin/python benchmarks/weights.py
	$(BIN)/python benchmarks/solvers.py
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/choices.py
	$(BIN)/python benchmarks/trajectories.py
	$(BIN)/python benchmarks/data.py
	$(BIN)/python benchmarks/pod.py
	$(BIN)/python benchmarks/stores.py
	$(BIN)/python benchmarks/page.py
	$(BIN)/python benchmarks/server.py --requests 2000
	$(BIN)/parasol bench offline

# what takes too long for every day: the slow tests, ten thousand hostile files, a hundred thousand requests, ten thousand malformed ones
stress: setup
	PYTHONPATH=tests $(BIN)/python tests/stress/artifact_fuzz.py 10000
	$(BIN)/python -m pytest -n auto -m slow
	PARASOL_STRESS=1 $(BIN)/python -m pytest -m "slow or not slow" tests/stress/test_server_load.py
	$(BIN)/python benchmarks/server.py --requests 100000

# random manufactured problems against the public interface: right, or refused; `--minutes 30` goes on with new seeds
adversary: setup
	PYTHONPATH=tests $(BIN)/python -m adversary --seeds 1

clean:
	rm -rf $(VENV) $(VENV)-peers $(OUT) docs/_build docs/reference/api docs/tutorials/short
