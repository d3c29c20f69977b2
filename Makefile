# Needs Python 3.11 or newer and make, nothing else. Everything is installed into .venv.
# On Windows, without make, the README gives the commands.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# seqeval is built from its source, which older ways of building no longer can.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 --constraint constraints.txt
# Threads that wait by spinning would make tests slow wherever something else wants the core.
QUIET_THREADS := OMP_WAIT_POLICY=PASSIVE

.PHONY: demo test lint bench soak wheel clean

# The documentation that ships with Python becomes a model that fills masks: under three minutes on two cores.
demo: $(VENV)/.installed
	$(BIN)/bertsmith demo --out runs/demo

test: $(VENV)/.installed-test
	$(QUIET_THREADS) $(BIN)/python -m pytest -m "not soak"

lint: $(VENV)/.installed-lint
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright
	$(BIN)/lint-imports

# Speed and memory, as the numbers in docs/ were measured. The machine should have nothing else to do.
bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks

# The full counts and sizes that `make test` holds at small scale. Takes hours and leaves its numbers under docs/soak/.
soak: $(VENV)/.installed-test
	$(QUIET_THREADS) $(BIN)/python -m pytest -m soak --timeout 0 || test $$? -eq 5
	$(BIN)/python benchmarks/prepare_memory.py
	$(BIN)/python -m benchmarks.large_step

wheel: $(VENV)/.installed-dev
	$(BIN)/python -m build --wheel

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .hypothesis .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "bertsmith needs Python 3.11 or newer. Received: $(PYTHON), $$($(PYTHON) --version 2>&1 | head -n 1)." \
			"Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "A virtual environment needs Python's venv and ensurepip. Received: $(PYTHON) without them." \
			"On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# The empty marker files are as old as the last installation: a change of what is to be installed installs again.
$(VENV)/.installed: $(VENV)/.created pyproject.toml constraints.txt
	$(INSTALL) --editable .
	@touch $@

$(VENV)/.installed-%: $(VENV)/.created pyproject.toml constraints.txt
	$(INSTALL) --editable ".[$*]"
	@touch $@
