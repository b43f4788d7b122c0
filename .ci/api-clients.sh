#!/usr/bin/env bash
# Checks api/openapi.json with a validator and two client generators, whose code is type-checked. Called
# from .ci/run; without Python, npm or a package index it prints a notice and skips the checks that need them.
set -euo pipefail
cd "$(dirname "$0")/.."

document="$PWD/api/openapi.json"
tools="$PWD/target/tools/api-clients"
made="$(mktemp -d)"
trap 'rm -rf "$made"' EXIT

python="$tools/python"
if [ ! -x "$python/bin/mypy" ] && ! { python3 -m venv "$python" && "$python/bin/pip" install --quiet \
  'openapi-spec-validator==0.9.0' 'openapi-python-client==0.29.1' 'mypy==2.4.1'; }; then
  rm -rf "$python"
  echo "NOTICE: the API document is NOT validated, and no Python client is generated: that needs python3 with venv and pip"
else
  "$python/bin/openapi-spec-validator" --validation-errors all "$document"
  # A warning means that an operation or a schema is left out.
  "$python/bin/openapi-python-client" generate --path "$document" --config .ci/openapi-python-client.yml --meta none \
    --fail-on-warning --output-path "$made/sidetone_client"
  (cd "$made" && "$python/bin/mypy" --strict --no-incremental sidetone_client)
fi

node="$tools/node"
if [ ! -x "$node/node_modules/.bin/tsc" ] && ! { command -v npm >/dev/null && mkdir -p "$node" &&
  npm install --silent --no-audit --no-fund --prefix "$node" openapi-typescript@7.13.0 typescript@5.9.3; }; then
  rm -rf "$node"
  echo "NOTICE: no TypeScript client is generated from the API document: that needs npm"
else
  "$node/node_modules/.bin/openapi-typescript" "$document" --output "$made/sidetone.d.ts"
  "$node/node_modules/.bin/tsc" --strict --noEmit "$made/sidetone.d.ts"
fi
