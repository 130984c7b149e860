#!/usr/bin/env bash
# tests/mutation/run.sh [MUTATION...]: builds weft with a rule of exact mode broken on purpose, one
# rule at a time, and shows that tests notice (EXACT 7.11). Ends with a table; exit code 1 where a
# mutation survives, or where a test is red without one.
#
# Each mutation is a patch beside this script, applied to a copy of the sources: they themselves hold
# none. Without arguments: all of them. Uses ccache where there is one.
set -euo pipefail
cd "$(dirname "$0")/../.."
jobs=${WEFT_JOBS:-$(nproc)}
# As CTest sets it: threads that spin for long starve each other on few cores.
export GOMP_SPINCOUNT=500

# Mutation, test program, which of its test cases (a Catch2 filter): those that must notice.
must_notice() {
  cat <<'END'
bias_in_leaf  apps/test_trainer_layouts         one set of bits: transformer*
contraction   core/test_core                    [contraction]
far_halving   parallel/test_parallel            every number of leaves*
lane_fold     apps/test_trainer_layouts         one set of bits: MLP*
lane_fold     apps/test_trainer_layouts         one set of bits: transformer*
lifo_gpipe    parallel/pipeline/test_pipeline   *
rank_norm     parallel/data/test_data_parallel  [global_norm]
rank_norm     apps/test_trainer_layouts         one set of bits: MLP*
sp_rows       apps/test_trainer_layouts         one set of bits: transformer*
zero_start    parallel/test_parallel            every number of leaves*
END
}

known=$(must_notice | awk '{ print $1 }' | sort -u)
wanted=${*:-$known}
for mutation in $wanted; do
  grep -qx "$mutation" <<<"$known" || { echo "expected one of: "$known"; found $mutation" >&2; exit 2; }
done

kokkos=${Kokkos_ROOT:-$(apps/setup.sh)}
launcher=$(command -v ccache >/dev/null && echo ccache || true)

# folder_of MUTATION: flags of all targets need a folder of their own, else one serves all in turn,
# and each compiles the sources that its patch changes.
folder_of() { [ "$1" = contraction ] && echo build/mutation-contraction || echo build/mutation; }

# sources FOLDER: brings its copy of the sources to the working tree's state; what is equal already
# keeps its time, so that it is not compiled again.
sources() {
  local to=$1/source file
  while IFS= read -r -d '' file; do
    [ -f "$file" ] && ! cmp -s "$file" "$to/$file" && install -D "$file" "$to/$file"
  done < <(git ls-files -zco --exclude-standard -- CMakeLists.txt CMakePresets.json core parallel layers io apps tests perf)
  return 0
}

# build FOLDER MUTATION PROGRAM...: MUTATION may be empty.
build() {
  local folder=$1 mutation=$2 patch
  shift 2
  sources "$folder"
  if [ -n "$mutation" ]; then
    patch=$PWD/tests/mutation/$mutation.patch
    (cd "$folder/source" && GIT_CEILING_DIRECTORIES=$(dirname "$PWD") git apply "$patch") ||
      { echo "$patch no longer fits the sources: make it again" >&2; exit 2; }
  fi
  if ! cmake --preset release -S "$folder/source" -B "$folder" ${kokkos:+-DKokkos_ROOT="$kokkos"} \
      -DWEFT_MPI=OFF -DWEFT_UCX=OFF -DWEFT_PERF=OFF -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher" >"$folder/log" 2>&1 ||
    ! cmake --build "$folder" -j "$jobs" --target "${@##*/}" >>"$folder/log" 2>&1; then
    tail -30 "$folder/log" >&2
    exit 2
  fi
}

# red_cases FOLDER PROGRAM CASES: the test cases that fail, one a line.
red_cases() {
  local out="$1/result.xml" code=0
  timeout 300 "$1/tests/$2" "$3" --warn NoTests --reporter junit --out "$out" >"$1/output" 2>&1 || code=$?
  [ $code = 0 ] && return
  sed -n -e 's/.*<testcase [^>]*name="\([^"]*\)".*/\1/; t keep' -e '/<\(failure\|error\)/ { x; p; x }' -e b -e ': keep; h' "$out" | sort -u |
    grep . || echo "(ended with $code)"
}

programs_of() { must_notice | awk -v m="$1" '$1 == m { print $2 }' | sort -u; }
cases_of() { must_notice | awk -v m="$1" '$1 == m { program = $2; sub(/^[^ ]+ +[^ ]+ +/, ""); print program "\t" $0 }'; }

failed=0
table=""
# Without a mutation they must be green, else red says nothing.
build build/mutation "" $(for mutation in $wanted; do programs_of "$mutation"; done | sort -u)
while IFS=$'\t' read -r program cases; do
  red=$(red_cases build/mutation "$program" "$cases")
  [ -z "$red" ] || { failed=1; table+="(none)|RED: $program: $red"$'\n'; }
done < <(for mutation in $wanted; do cases_of "$mutation"; done | sort -u)

for mutation in $wanted; do
  folder=$(folder_of "$mutation")
  build "$folder" "$mutation" $(programs_of "$mutation")
  noticed=0
  while IFS=$'\t' read -r program cases; do
    red=$(red_cases "$folder" "$program" "$cases")
    if [ -z "$red" ]; then
      table+="$mutation|  green: ${program##*/}: $cases"$'\n'
    else
      noticed=1
      while read -r name; do table+="$mutation|${program##*/}: $name"$'\n'; done <<<"$red"
    fi
  done < <(cases_of "$mutation")
  [ $noticed = 1 ] || { failed=1; table+="$mutation|SURVIVES"$'\n'; }
done

printf '\n%-14s %s\n' mutation "tests that turn red"
awk -F'|' 'NF { printf "%-14s %s\n", $1 == last ? "" : $1, $2; last = $1 }' <<<"$table"
exit $failed
