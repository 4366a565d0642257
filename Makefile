# Everything runs in the project's own .venv; `make setup` builds it and does nothing when it is ready.
SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export LANGSMITH_TRACING := false
# Compiled modules are kept. Without them (many containers ask for that) each of the many processes of a study or a test
# compiles all that it imports anew, which takes it as long again as the import.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup compare lab test test-notebooks test-full test-full-virtual test-pythons test-old-mcp test-hosts test-all test-browser lint typecheck bench probe docs site clean lock
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

setup: $(READY) ## make .venv ready (does nothing when it is)

$(READY): requirements/lock.txt requirements/bootstrap.txt pyproject.toml requirements/setup.sh
	@sh requirements/setup.sh $(VENV)
	@touch $(READY)

compare: $(READY) ## run the main job: the alternatives side by side, table, plots and report folder
	@$(BIN)/docmind-lab compare

lab: $(READY) ## open JupyterLab on the notebooks
	@$(BIN)/docmind-lab lab

test test-notebooks test-full test-full-virtual test-all: export MPLBACKEND = Agg
# Three at a time: many tests wait for something. A file stays with one worker, and so do its fixtures; the longest
# files are begun first (tests/support/longest_first.py).
# Plugins that no test uses are not loaded: one for notebooks alone imports for two seconds, in every worker.
SIDE_BY_SIDE := -n 3 --dist loadfile --no-loadscope-reorder -p no:nbmake -p no:langsmith_plugin -p no:anyio
# Minutes each: whoever has none left takes one over. Each has one core for its own processes.
NOTEBOOKS := LOKY_MAX_CPU_COUNT=1 $(BIN)/python -m pytest --nbmake -n 2 --dist worksteal -p no:cacheprovider
# Those that a user starts with.
STARTERS := $(addprefix notebooks/,00_start_here.ipynb 01_which_alternative.ipynb 02_how_long_a_timeout.ipynb \
  10_can_your_own_graph_keep_a_deadline.ipynb)
test: $(READY) ## run the tests, and the notebooks that a user starts with
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "not full and not browser" tests
	@$(NOTEBOOKS) --nbmake-timeout=300 $(STARTERS)

test-notebooks: $(READY) ## run the notebooks that `make test` leaves out
	@$(NOTEBOOKS) --nbmake-timeout=600 $(filter-out $(STARTERS),$(wildcard notebooks/*.ipynb))

test-full: test-full-virtual ## run the tests that `make test` leaves out, at their full counts
	@$(BIN)/python -m pytest -m "full and wall and not browser" tests

# Those of real time have the machine to themselves, and so they are not among these.
test-full-virtual: $(READY) ## run those of the full counts that do not wait in real time
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "full and not wall and not browser" tests

test-pythons: $(READY) ## run the tests of virtual time, and compare one study's tables, on every other Python found
	@sh requirements/every-python.sh kernel

# Packages beside the pinned set, in a folder that is put before it: other versions, or programs that call agents.
.venv-mcp1/.ready .venv-hosts/.ready .venv-marimo/.ready .venv-site/.ready: .venv-%/.ready: requirements/%.txt $(READY)
	@rm -rf $(@D)
	@UV_SYSTEM_CERTS=true $(BIN)/uv pip install --quiet --no-deps --require-hashes --python $(BIN)/python \
	  --target $(@D) -r $<
	@touch $@

test-old-mcp: .venv-mcp1/.ready ## run the tests of MCP sessions with mcp 1 and langchain-mcp-adapters in place of mcp 2
	@PYTHONPATH=.venv-mcp1 $(BIN)/python -m pytest -p no:cacheprovider tests/enforcement/test_mcp_session.py

test-hosts: .venv-hosts/.ready ## run the recipes of docs/hosts.md in the real Streamlit and Celery
	@PYTHONPATH=$(CURDIR)/.venv-hosts $(BIN)/python -m pytest -p no:cacheprovider tests/enforcement/test_hosts_page.py

test-all: $(READY) ## run every test at its full counts, and all notebooks, on every Python found
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) tests
	@$(NOTEBOOKS) --nbmake-timeout=600 notebooks/*.ipynb
	@sh requirements/every-python.sh all
	@$(MAKE) --no-print-directory test-old-mcp test-hosts

test-browser: .venv-marimo/.ready ## run the tests of the panel and the site in a real browser; skipped with a reason where there is none
	@PYTHONPATH=$(CURDIR)/.venv-marimo $(BIN)/python -m pytest -m browser tests/browser

lint: $(READY) ## check style, formatting, which package imports which, and that notebooks carry no outputs
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/nbstripout --verify notebooks/*.ipynb
	@$(BIN)/lint-imports

typecheck: $(READY) ## check types, strictly
	@$(BIN)/mypy

bench: $(READY) ## measure the project's own costs, as ratios within one run
	@$(BIN)/python -m benchmarks

probe: $(READY) ## run the surveys of agents, clients and threads again, and write their data, pages and figure
	@$(BIN)/python -m surveys agents --repeats 3 --out data/agent_probes
	@$(BIN)/python -m surveys timeouts --repeats 3 --out data/client_timeouts.csv
	@$(BIN)/python -m surveys threads --repeats 3 --out data/crash_findings/threads.csv
	@$(BIN)/python -m surveys page

docs: $(READY) ## write docs/data-dictionary.md and the pictures of docs/gallery.md
	@$(BIN)/python docs/make_data_dictionary.py > docs/data-dictionary.md
	@$(BIN)/python docs/make_gallery.py

# Nothing is fetched while it is built. What mkdocs-material prints of other projects has no place here.
site: .venv-site/.ready ## build the site in site/: pages, reference, notebooks run once (SITE_NOTEBOOKS=no: without outputs)
	@LOKY_MAX_CPU_COUNT=1 NO_MKDOCS_2_WARNING=true PYTHONPATH=$(CURDIR)/.venv-site $(BIN)/python -m mkdocs build
	@echo "site: site/index.html"

lock: $(READY) ## resolve the dependencies anew into requirements/lock.txt
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-annotate --no-header --upgrade pyproject.toml -o requirements/lock.txt
	@for name in mcp1 hosts marimo site; do $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-deps \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header --upgrade \
	  requirements/$$name.in -o requirements/$$name.txt || exit 1; done

clean: ## remove .venv, caches and results
	@rm -rf $(VENV) .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis results .cases .cache site
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
