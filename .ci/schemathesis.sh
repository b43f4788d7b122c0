#!/usr/bin/env bash
# Schemathesis against a running engine with two tenants in it: every operation of the API document, with every
# available check. Called from .ci/run; without Python or pip it prints a notice and skips.
set -euo pipefail
cd "$(dirname "$0")/.."

tools="$PWD/target/tools/schemathesis"
if [ ! -x "$tools/bin/st" ]; then
  if ! { python3 -m venv "$tools" && "$tools/bin/pip" install --quiet "schemathesis==4.32.5"; }; then
    rm -rf "$tools"
    printf '\n%s\n%s\n\n' "NOTICE: schemathesis is NOT run, nobody fuzzes the API by its document:" \
      "NOTICE: it needs python3 with venv and pip, and a package index"
    exit 0
  fi
fi

SIDETONE_SCHEMATHESIS="$tools/bin/st" SIDETONE_SCHEMATHESIS_EXAMPLES="${SIDETONE_SCHEMATHESIS_EXAMPLES:-20}" \
  cargo test --workspace --test engine -- --ignored --exact isolation::schemathesis::schemathesis_finds_nothing
