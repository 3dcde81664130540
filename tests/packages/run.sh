#!/usr/bin/env bash
# Builds the packages twice and tries them: same bytes, well-formed, small, and they work in an empty environment.
#
#     tests/packages/run.sh [FOLDER]
#
# leaves the sdist and the wheels of this machine in FOLDER (dist). Needs the package index for the
# tools and, in the last step, for the dependencies of the wheels.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath -m "${1:-dist}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Archives hold the time of the last commit; without Git, of a file that every release changes.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2> /dev/null || stat -c %Y docs/changelog.md)
export SOURCE_DATE_EPOCH PIP_DISABLE_PIP_VERSION_CHECK=1
python3 -m venv "$scratch/tools"
"$scratch/tools/bin/pip" install -q build twine check-wheel-contents

for time in first second; do
  echo "+ $time build: the sdist, and from it alone the wheels with and without kernels"
  "$scratch/tools/bin/python" -m build -o "$scratch/$time" . > "$scratch/$time.log" || { cat "$scratch/$time.log"; exit 1; }
  mkdir "$scratch/$time/source"
  tar -xzf "$scratch/$time"/*.tar.gz -C "$scratch/$time/source" --strip-components 1
  STREAMMETRICS_COMPILE=0 "$scratch/tools/bin/python" -m build -w -o "$scratch/$time" "$scratch/$time/source" >> "$scratch/$time.log"
  rm -r "$scratch/$time/source"
done
(cd "$scratch/first" && sha256sum -- *) | tee "$scratch/sums"
(cd "$scratch/second" && sha256sum --check --quiet "$scratch/sums")

echo "+ well-formed"
"$scratch/tools/bin/twine" check --strict "$scratch"/first/*
"$scratch/tools/bin/check-wheel-contents" "$scratch"/first/*.whl
for wheel in "$scratch"/first/*.whl; do
  size=$(stat -c %s "$wheel")
  test "$size" -lt 2000000 || { echo "$wheel has $size bytes"; exit 1; }
  if unzip -Z1 "$wheel" | grep -vE '^streammetrics(-[^/]*\.dist-info)?/' ; then
    echo "$wheel holds more than the package"
    exit 1
  fi
done

for wheel in "$scratch"/first/*.whl; do
  echo "+ $(basename "$wheel") in an empty environment"
  rm -rf "$scratch/empty"
  python3 -m venv "$scratch/empty"
  "$scratch/empty/bin/pip" install -q "$wheel"
  "$scratch/empty/bin/python" -P tests/packages/smoke.py | tee "$scratch/smoke"
  grep -q "$scratch/empty" "$scratch/smoke"
done
mkdir -p "$out"
cp "$scratch"/first/* "$out"
