# Sourced by the other scripts: `in_environment PACKAGE ... <<PROGRAM` runs a Python program in a temporary environment
# that holds these packages alone. Programs can import the modules of this folder.
set -euo pipefail

in_environment() {
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  python3 -m venv "$folder/env"
  "$folder/env/bin/pip" install --quiet --no-compile --disable-pip-version-check "$@"
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$(dirname "${BASH_SOURCE[0]}")${PYTHONPATH:+:$PYTHONPATH} "$folder/env/bin/python" -
}
