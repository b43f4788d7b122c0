#!/usr/bin/env bash
# Tests the panel of the built program in Chromium (tests/browser): .ci/browser.sh [--screenshots FOLDER] [SUITE…].
# Called from .ci/run; needs chromium, node, npm and openssl, and skips with a notice where they are missing, except in CI.
set -euo pipefail
cd "$(dirname "$0")/.."
program="${SIDETONE_PROGRAM:-$PWD/target/debug/sidetone}"
for tool in "${CHROMIUM:-chromium}" node npm openssl; do
  command -v "$tool" >/dev/null && continue
  [ -z "${CI:-}" ] || { echo "error: $tool is missing, the panel cannot be tried in a browser" >&2; exit 1; }
  echo "NOTICE: $tool is missing, the panel is not tried in a browser"
  exit 0
done
[ -x "$program" ] || { echo "error: $program does not exist: cargo build --bin sidetone" >&2; exit 1; }
[ -d tests/browser/node_modules/axe-core ] || npm ci --prefix tests/browser --silent --no-audit --no-fund
exec node tests/browser/main.mjs "$program" "$@"
