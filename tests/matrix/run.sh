#!/usr/bin/env bash
# Runs the README's tests with one thing changed at a time from one base, this machine's python3.
#
#     tests/matrix/run.sh               # everything that can be had here; the rest is named and skipped
#     tests/matrix/run.sh python3.14 lowest
#     TESTS="tests/test_results.py" tests/matrix/run.sh timezone  # other tests than all
#
# Environments stay in build/matrix. A table of what passed comes last; the exit status is 1 if
# anything failed. .github/workflows/matrix.yml has what cannot be had on one machine.
set -uo pipefail
cd "$(dirname "$0")/../.."
read -ra tests <<< "${TESTS:-tests}"
read -ra workers <<< "${WORKERS--n auto}"
place=$PWD/build/matrix
mkdir -p "$place"
declare -A ready
results=()
unset PYTHONDONTWRITEBYTECODE

all=(base python3.11 python3.12 python3.13 python3.14 python3.13t python3.14t lowest newest
  reference baseline no-avx512 no-simd c-locale timezone warnings optimized)
(($#)) && all=("$@")

# Install a copy of the project for a Python: environment NAME PYTHON [arguments of pip]. Each has
# its own copy, because a free-threaded Python compiles other kernels beside the sources.
environment() {
  local name=$1 folder=$place/$1 python=$2
  shift 2
  [[ ${ready[$name]:-} ]] && return
  mkdir -p "$folder/source"
  git ls-files -coz --exclude-standard | tar -c --null -T - | tar -x -C "$folder/source"
  [[ -e $folder/bin/pip ]] || "$python" -m venv "$folder"
  "$folder/bin/pip" install -q -U pip && "$folder/bin/pip" install -q "$@" -e "$folder/source[test]" \
    && ready[$name]=1
}

# Run the chosen tests in an environment: run NAME ENVIRONMENT [arguments of python].
run() {
  local log=$place/$1.log folder=$place/$2
  shift 2
  (cd "$folder/source" && "$folder/bin/python" "$@" -m pytest -q "${workers[@]}" "${chosen[@]}") > "$log" 2>&1
}

# Print the dependencies at the versions that pyproject.toml names: the lowest, as constraints of pip.
lowest() {
  python3 - << 'END'
import re, tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
extras = project["optional-dependencies"]
for each in [*project["dependencies"], *extras["test"], *extras["cli"], *extras["io"], *extras["text"]]:
    found = re.match(r"([\w.-]+)(?:\[[^]]*\])?>=([\w.]+)", each)
    if found:
        print(f"{found[1]}=={found[2]}")
END
}

try() {
  local name=$1 folder=base python=python3
  chosen=("${tests[@]}")
  case $name in
    python*)
      python=$name folder=$name
      if ! "$name" -c "" > /dev/null 2>&1; then  # shims of pyenv may lead nowhere
        results+=("$name: skipped, there is no $name here")
        return
      fi ;;
    lowest) folder=lowest && lowest > "$place/lowest.txt" ;;
    newest) folder=newest ;;
  esac
  echo "+ $name"
  case $folder in
    lowest) environment lowest python3 -c "$place/lowest.txt" ;;
    newest) environment newest python3 -U --upgrade-strategy eager ;;
    *) environment "$folder" "$python" ;;
  esac > "$place/$name.log" 2>&1 || { results+=("$name: could not be installed, see $place/$name.log"); return; }
  case $name in
    reference | baseline) STREAMMETRICS_KERNELS=$name run "$name" base ;;
    no-avx512) NPY_DISABLE_CPU_FEATURES=$("$place/base/bin/python" tests/processors.py above) run "$name" base ;;
    no-simd) NPY_DISABLE_CPU_FEATURES=$("$place/base/bin/python" tests/processors.py dispatched) run "$name" base ;;
    c-locale) LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 run "$name" base ;;
    timezone) TZ=Pacific/Kiritimati run "$name" base ;;
    warnings) run "$name" base -W error ;;
    optimized)
      [[ -z ${TESTS:-} ]] && chosen=(tests/test_law_kit.py tests/test_examples.py)
      # pytest executes the assertions of test modules; it warns that it leaves out those of others.
      chosen+=(-W ignore::pytest.PytestConfigWarning)
      run "$name" base -O ;;
    *) run "$name" "$folder" ;;
  esac
  local status=$?
  results+=("$name: $( ((status)) && echo failed || echo passed), $(tail -n 1 "$place/$name.log")")
}

for name in "${all[@]}"; do try "$name"; done
printf '%s\n' "${results[@]}"
! printf '%s\n' "${results[@]}" | grep -qE ': (failed|could)'
