#!/bin/sh
# Runs the demo and all tests in a fresh root of a Debian or Ubuntu release, by cmake/quickstart.sh.
# Needs root on Linux, debootstrap, util-linux, git, and a mirror of the release. Tests the commit
# that is checked out.
#
#   sh tests/release.sh SUITE            bookworm, trixie, sid, noble, ...
#   sh tests/release.sh SUITE mpich      with MPICH in place of Open MPI
#
#   QUICK=1           builds what the quick tests need, runs them, and prints eight digests, which are
#                     those of other MPIs on this machine (tests/program/digests.sh)
#   MIRROR=URL        another mirror than Debian's or Ubuntu's own
#   ROOT=DIR          keeps the root there for a look at it, and uses it again if it exists
#   UBUNTU_KEYS=FILE  Ubuntu's keys, where the package with them is not installed
#
# Tried in November 2026, with GCC 12.2 to 16.2 and CMake 3.25 to 4.3:
#   bookworm        Open MPI 4.1.4
#   noble           Open MPI 4.1.6; 158 of 182 tests
#   trixie          Open MPI 5.0.7; skips multinode
#   sid             Open MPI 6.0.0rc2, which crashes if its monitoring is on, in any program: skips
#                   MPI's counts in test_monitoring, and multinode
#   bookworm mpich  MPICH 4.0.2, whose ranks poll without giving way: on more than 2 ranks tests have five
#                   times the limit; skips multinode, MPI's counts, a part of program_mistakes_mpi
# Eight digests of one machine are equal with Open MPI 4.1.4 and 5.0.7 and MPICH 4.0.2.
#
# All processes and mounts are in namespaces of their own, so they end with this script. The exit
# code is that of the command that failed, or 1 if a build printed a warning.
set -eu

fail() {
    echo "release.sh: $*" >&2
    exit 2
}

# inside ROOT COMMAND...: in the root, with nothing of our environment.
inside() {
    target=$1
    shift
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive \
        chroot "$target" sh -c "$*" </dev/null
}

# One script of debootstrap makes all releases of Ubuntu. Older debootstraps do not know the names
# of the newer ones.
scripts=/usr/share/debootstrap/scripts
ubuntu_keys=${UBUNTU_KEYS:-/usr/share/keyrings/ubuntu-archive-keyring.gpg}

bootstrap() {
    case $suite in
        focal | jammy | noble | plucky | questing | resolute)
            set -- "$suite" "$root" "${MIRROR:-http://archive.ubuntu.com/ubuntu}" "$scripts/gutsy"
            options="--components=main,universe --keyring=$ubuntu_keys"
            [ -e "$ubuntu_keys" ] || fail "there is no file $ubuntu_keys: name one with Ubuntu's" \
                "keys in UBUNTU_KEYS; the package ubuntu-keyring of any Ubuntu has it"
            ;;
        *)
            set -- "$suite" "$root" "${MIRROR:-http://deb.debian.org/debian}"
            options=
            ;;
    esac
    # shellcheck disable=SC2086 # words
    debootstrap --variant=minbase --force-check-gpg $options "$@"
}

mounts() {
    mount --make-rprivate /
    mount --bind "$root" "$root" # tests that make mount namespaces need a root that is a mount
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --bind /dev "$root/dev"
    mount -t tmpfs none "$root/dev/shm"
}

# try COMMAND: runs the command in the root's clone.
try() {
    echo "=== $suite $mpi: $1"
    {
        code=0
        inside "$root" "cd /zero && $1" || code=$?
        echo $code >"$root/code"
    } 2>&1 | tee "$root/log"
    code=$(cat "$root/code")
    [ "$code" -eq 0 ] || exit "$code"
    if grep -aE '[0-9]: warning: |CMake .*Warning' "$root/log"; then
        echo "release.sh: expected no warning of the compiler or CMake" >&2
        exit 1
    fi
}

# In namespaces of its own.
all() {
    [ -e "$root/bin/sh" ] || bootstrap
    mounts
    rm -rf "$root/zero"
    git -c safe.directory='*' clone -q --no-hardlinks "$tree" "$root/zero"
    [ "$mpi" != mpich ] || inside "$root" \
        "apt-get update -qq && apt-get install -y -qq --no-install-recommends mpich libmpich-dev"
    if [ -n "${QUICK-}" ]; then
        try 'sh cmake/quickstart.sh deps && cmake -B build && cmake --build build -j 2 --target quick_tests'
        try 'ctest --test-dir build -L quick -j 2 --output-on-failure --no-tests=error'
        try 'sh tests/program/digests.sh build/zero mpiexec -n RANKS --map-by :OVERSUBSCRIBE'
    else
        try 'sh cmake/quickstart.sh demo'
        try 'sh cmake/quickstart.sh check'
    fi
    echo "=== $suite $mpi: passed: $(inside "$root" 'cc --version; mpirun --version' |
        grep -E '^cc|^mpi|Version' | tr -s ' \n' ' ')"
}

tree=$(cd "$(dirname "$0")/.." && pwd)
suite=${1-} mpi=${2-openmpi}
case $# in 1 | 2) ;; *) fail "usage: sh tests/release.sh SUITE [mpich]" ;; esac
case $mpi in openmpi | mpich) ;; *) fail "expected mpich, found $mpi" ;; esac
if [ "${ZERO_RELEASE-}" = "$$" ]; then
    root=$ROOT
    all
    exit
fi
[ "$(id -u)" -eq 0 ] || fail "only root can make a root directory; this is user $(id -u)"
for command in debootstrap unshare git; do
    command -v "$command" >/dev/null || fail "there is no command $command"
done
root=${ROOT:-$(mktemp -d)}
trap '[ -n "${ROOT-}" ] || rm -rf --one-file-system "$root"' EXIT
# The process there has the PID 1. unshare ignores other signals than SIGKILL while it waits.
ROOT=$root ZERO_RELEASE=1 unshare --mount --pid --fork --kill-child sh "$0" "$@" &
inner=$!
trap 'kill -KILL $inner; exit 1' HUP INT TERM
wait $inner
