# Aliases for what people do first. Everything is in `.venv`, made by whichever command comes first.
PYTHON ?= python3
unexport PYTHONDONTWRITEBYTECODE  # tests and notebooks start many processes
BIN := .venv/bin/python
PIP = $(BIN) -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
CHROMIUM = $(shell for name in chromium chromium-browser google-chrome chrome; do command -v $$name && break; done)
ROOT := $(filter 0,$(shell id -u))
APT = $(if $(ROOT),,sudo -n )apt-get

# JupyterLab shows Markdown as a page and asks nothing; notebooks that were run are no change to git (.gitattributes).
SETTINGS := .venv/share/jupyter/lab/settings/overrides.json
LAB := {"@jupyterlab/docmanager-extension:plugin": {"defaultViewers": {"markdown": "Markdown Preview"}}, \
"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}}
KEYS := metadata.papermill metadata.jupytext metadata.language_info.version metadata.language_info.codemirror_mode \
metadata.language_info.file_extension metadata.language_info.mimetype metadata.language_info.nbconvert_exporter \
metadata.language_info.pygments_lexer cell.metadata.papermill cell.metadata.lines_to_next_cell

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/:[^#]*## */\t/' | expand -t 12

setup: .venv/ready  ## the environment, pinned by constraints.txt

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or later is needed: make PYTHON=...")'
	test -x $(BIN) || $(PYTHON) -m venv .venv
	$(PIP) torch
	$(PIP) -e '.[dev]'
	@mkdir -p $(dir $(SETTINGS)) && echo '$(LAB)' > $(SETTINGS)
	@! git rev-parse --git-dir > /dev/null 2>&1 || { git config filter.nbstripout.clean '$(BIN) -m nbstripout' && \
	git config filter.nbstripout.smudge cat && git config filter.nbstripout.extrakeys '$(KEYS)'; }
	touch .venv/ready

figures: .venv/ready  ## redraw every figure from the committed records
	$(BIN) -m nlstm_lab figures

# A worker a processor, up to eight; tests of one group run in one of them.
TESTS :=
PYTEST := $(BIN) -m pytest -n logical --maxprocesses=8 --dist loadgroup
test: .venv/ready  ## all tests, or TESTS=tests/cells; those in a browser where `make browser` found one
	$(PYTEST) -rs $(TESTS)

fast-test: .venv/ready  ## the tests that take a fraction of a second each: a minute in all
	$(PYTEST) -m 'not slow and not browser and not soak' $(TESTS)

soak: browser  ## long campaigns: kills at random moments, many trainings; their last figures are in tests/SOAK.md
	$(PYTEST) -m soak -rs $(TESTS)

# In a folder of its own, without data: the networks of seconds are trained there, and nothing committed changes.
SMOKE := workspaces/smoke
smoke: .venv/ready  ## notebooks with networks that train in seconds
	rm -rf $(SMOKE) && mkdir -p $(SMOKE)/data && cp -r notebooks $(SMOKE)/ && cp -r data/targets $(SMOKE)/data/
	NLSTM_LAB_ROOT=$(CURDIR)/$(SMOKE) $(BIN) -m nlstm_lab figures 10 11 12 13 14 15 93 -p scale=smoke -p seeds=0,1,2

# Whatever git says of the folder before, it must say afterwards.
STATE := { git status --porcelain; git diff; } | git hash-object --stdin
unchanged: .venv/ready  ## every figure drawn anew is the committed one
	before=$$($(STATE)); $(BIN) -m nlstm_lab figures --all && test "$$before" = "$$($(STATE))" || \
		{ git status --short; echo "figures have changed: look at them, and commit them or mend what changed them"; false; }

browser: .venv/ready  ## what the browser tests need, installed where that is possible
	$(PIP) -e '.[browser]'
	@test -n "$(CHROMIUM)" || { $(APT) update -qq && DEBIAN_FRONTEND=noninteractive $(APT) install -y -qq chromium >/dev/null; } \
	|| echo "There is no Chromium here and it cannot be installed: the browser tests are skipped."

browser-test: browser  ## of the tests, the widgets in JupyterLab and Chromium; screenshots in tests/browser/screenshots
	SCREENSHOTS=1 $(PYTEST) -rs -m "browser and not soak" tests/browser

pages: .venv/ready  ## FINDINGS.md, VERDICTS.md, the list of notebooks and the README's numbers, from the records
	$(BIN) docs/written.py

.venv/site: .venv/ready
	$(PIP) -e '.[site]'
	touch .venv/site

NOTEBOOKS :=
site: .venv/site  ## the site in site/, of executed notebooks (all that changed, or NOTEBOOKS="12 93")
	$(BIN) -m nlstm_lab figures $(NOTEBOOKS)
	$(BIN) docs/build.py

check: .venv/ready  ## lint and types
	$(BIN) -m ruff check .
	$(BIN) -m ruff format --check .
	$(BIN) -m mypy

lab: .venv/ready  ## the notebooks in JupyterLab
	$(BIN) -m jupyter lab --LabApp.default_url=/lab/tree/notebooks/README.md $(if $(ROOT),--allow-root)

.PHONY: help setup pages site figures test fast-test soak browser browser-test smoke unchanged check lab
