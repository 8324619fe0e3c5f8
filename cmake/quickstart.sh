#!/bin/sh
# From a bare machine to a trained model; usage() below says how. Works from any directory, from a
# tree that is read-only, without a terminal, as root or with sudo.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}

usage() {
    cat <<END
usage: [BUILD=DIR] sh cmake/quickstart.sh demo|check|deps|--help [OPTIONS OF CMAKE...]

  demo   installs what is missing, builds the program, and trains a tiny model on 4 processes
         in ZeRO's stages 0 and 3
  check  installs what is missing, builds everything, and runs all tests
  deps   installs what is missing, and nothing else

The build is in build/, or in BUILD. cmake/packages.txt lists what is installed. Examples:
  BUILD=/tmp/zero sh cmake/quickstart.sh demo
  sh cmake/quickstart.sh check -DZERO_NATIVE=OFF

Exit codes: 2 wrong usage, 3 something is missing and cannot be installed (it prints what to run),
otherwise that of the command that failed.
END
}

fail() { # fail CODE MESSAGE...
    code=$1
    shift
    echo "quickstart: $*" >&2
    exit "$code"
}

packages() { # packages COLUMN [PROBES]: prints the names in this column of packages.txt, each once
    grep -v '^#' "$root/cmake/packages.txt" | awk -v column="$1" -v probes="${2-}" '
        probes != "" && index(" " probes " ", " " $1 " ") == 0 { next }
        $column != "-" && !seen[$column]++ { printf "%s%s", separator, $column; separator = " " }'
}

# This probes for the thing itself, not for its package, so an MPI from elsewhere is kept. No
# function of this script may have the name of a command in packages.txt: it would be found instead.
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
quickstart: packages are missing. Install them, then run this again:
  Debian, Ubuntu  apt-get install $(packages 2 "$1")
  Fedora, RHEL    dnf install $(packages 3 "$1")
                  (on RHEL and similar: enable EPEL and CRB first; then: module load mpi)
  macOS           brew install $(packages 4 "$1")
  Spack           spack install --add $(packages 5 "$1"), in an environment that is active
END
    exit 3
}

# sudo drops our environment, so env sets it again. With /dev/null as input no package can ask a
# question. The messages are in English because blame() reads them.
apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get "$@" </dev/null >>"$log" 2>&1
}

# Package lists may be absent (in containers) or out of date. Where they cannot be renewed, those
# that are there may do.
apt_install() { # apt_install NAMES...
    apt update -q ||
        echo "quickstart: apt-get update failed; going on with the package lists that are there"
    apt install -y -q --no-install-recommends "$@"
}

# What apt-get says when it reaches no server, as an extended regular expression.
unreachable='Temporary failure resolving|Could not resolve|Could not connect|Cannot initiate'
unreachable="$unreachable|Unable to connect|Connection (failed|timed out|refused)"
unreachable="$unreachable|Network is unreachable|No route to host"

blame() { # says why apt-get failed, with the end of what it printed
    tail -n 20 "$log" | sed 's/^/  apt-get: /' >&2
    if grep -Eq "$unreachable" "$log"; then
        echo "quickstart: the network is not there: apt-get cannot reach a package server" >&2
    elif grep -Eq 'Release file .* (is expired|is not valid yet)' "$log"; then
        echo "quickstart: the package server's lists have expired, or this machine's clock is" \
            "wrong: it says $(date -u +%Y-%m-%d)" >&2
    else
        echo "quickstart: apt-get failed" >&2
    fi
    echo "quickstart: all that it printed is in $log" >&2
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
    log=$(mktemp "${TMPDIR:-/tmp}/zero-quickstart.XXXXXX")
    echo "quickstart: installing $names (apt-get prints to $log)"
    # shellcheck disable=SC2086 # a list of words, unquoted on purpose
    apt_install $names || {
        blame
        explain "$lacking"
    }
    lacking=$(missing)
    [ -z "$lacking" ] || {
        echo "quickstart: installed, but not found: $(packages 2 "$lacking"); see $log" >&2
        explain "$lacking"
    }
    rm -f "$log"
}

# build_goal demo|check FIRST [OPTIONS OF CMAKE...]: builds FIRST on all cores, then the goal.
build_goal() {
    goal=$1 first=$2
    shift 2
    mkdir -p "$build" 2>/dev/null && [ -w "$build" ] ||
        fail 2 "cannot write in $build: name another directory for the build," \
            "such as BUILD=/tmp/zero sh cmake/quickstart.sh $goal"
    deps
    cmake -S "$root" -B "$build" "$@"
    cmake --build "$build" -j "$(nproc 2>/dev/null || echo 2)" --target "$first"
    cmake --build "$build" --target "$goal"
}

case ${1-} in
    deps)
        [ $# -eq 1 ] || fail 2 "deps takes no options, found: $2"
        deps
        ;;
    demo)
        shift
        build_goal demo zero "$@"
        ;;
    check)
        shift
        build_goal check all "$@"
        ;;
    -h | --help | help) usage ;;
    *)
        usage >&2
        exit 2
        ;;
esac
