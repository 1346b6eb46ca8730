# shellcheck shell=bash
# What the scripts share: where the tree is, and how they speak. Sourced, never run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s\n' "$*"; }
step() { printf '== %s\n' "$*"; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# Prints the comment that a script opens with: its own --help.
show_help() {
  sed -n '2,/^[^#]/{/^#/{s/^# \{0,1\}//;p}}' "$1"
}

# Configures and builds a preset: build_preset NAME [TARGET …]. Quiet where nothing is to be done.
build_preset() {
  local preset=$1
  shift
  local folder=$root/build/$preset
  # A cached compilation is not lost when the tree stands in another folder.
  export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
  mkdir -p "$folder"
  # A first build compiles a dozen files at a time, which halves its time; clang's build sees each file alone.
  local options=()
  [[ -e $folder/CMakeCache.txt || $preset == clang || $preset == development ]] || options+=(-DTILEWRIGHT_UNITY=ON)
  step "configure $preset"
  (cd "$root" && cmake --preset "$preset" "${options[@]}" >"$folder/configure.log" 2>&1) || {
    cat "$folder/configure.log" >&2
    fail "cmake could not configure \`$preset\`"
  }
  step "build $preset${*:+ ($*)}"
  ninja -C "$folder" "$@" || fail "\`$preset\` does not build"
}
