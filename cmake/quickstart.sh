#!/bin/sh
# From a bare machine to a trained model: sh cmake/quickstart.sh demo | check | deps
#
#   demo   install what is missing, build, and train a tiny model on 4 processes
#   check  install what is missing, build, and run all tests
#   deps   install what is missing, and nothing else
#
# Works from any directory, without a terminal, as root or with sudo. The build is in build/.
# The exit code is 2 for wrong usage, and 3 where it cannot install: it then prints what to run.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build

packages() { # packages COLUMN [PROBES]: prints the names in this column of packages.txt, each once
    grep -v '^#' "$root/cmake/packages.txt" | awk -v column="$1" -v probes="${2-}" '
        probes != "" && index(" " probes " ", " " $1 " ") == 0 { next }
        $column != "-" && !seen[$column]++ { printf "%s%s", separator, $column; separator = " " }'
}

# This probes for the thing itself, not for its package, so an MPI from elsewhere is kept.
present() {
    case $1 in
        command:*) command -v "${1#*:}" ;;
        root:*) [ "$(id -u)$(uname)" != 0Linux ] || command -v "${1#*:}" ;;
        module:*) pkg-config --exists "${1#*:}" ;;
        header:*) echo "#include <${1#*:}>" | cc -E -x c - ;;
    esac >/dev/null 2>&1
}

missing() {
    for probe in $(packages 1); do
        present "$probe" || printf '%s ' "$probe"
    done
}

explain() { # explain PROBES: says what to run where we cannot install
    cat >&2 <<END
quickstart: missing: $1
Install it, then run this again:
  Debian, Ubuntu  apt-get install $(packages 2 "$1")
  Fedora, RHEL    dnf install $(packages 3 "$1")
                  (on RHEL and similar: enable EPEL and CRB first; then: module load mpi)
  macOS           brew install $(packages 4 "$1")
  Spack           spack install --add $(packages 5 "$1"), in an environment that is active
END
    exit 3
}

# Package lists may be absent (in containers) or out of date. sudo drops our environment, so env
# sets it again. With /dev/null as input no package can ask a question.
apt_install() {
    $as_root apt-get update -qq </dev/null || return
    $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "$@" </dev/null
}

deps() {
    lacking=$(missing)
    [ -n "$lacking" ] || return 0
    command -v apt-get >/dev/null || explain "$lacking"
    if [ "$(id -u)" -eq 0 ]; then as_root=
    elif command -v sudo >/dev/null; then as_root=sudo
    else explain "$lacking"
    fi
    names=$(packages 2 "$lacking")
    echo "quickstart: installing $names"
    # shellcheck disable=SC2086 # a list of words, unquoted on purpose
    apt_install $names || explain "$lacking"
    lacking=$(missing)
    [ -z "$lacking" ] || explain "$lacking"
}

build() {
    deps
    cmake -S "$root" -B "$build"
    cmake --build "$build" -j "$(nproc 2>/dev/null || echo 2)"
}

case ${1-} in
    deps) deps ;;
    demo | check)
        build
        cmake --build "$build" --target "$1"
        ;;
    *)
        echo "usage: sh cmake/quickstart.sh demo|check|deps" >&2
        exit 2
        ;;
esac
