# quickstart.sh SOURCE: cmake/quickstart.sh on a machine without a network, on which apt-get, cmake
# and the compilers are scripts of ours. The file calls gets a line for each call of those that do
# something.
source=$1
failed=0
enter=
work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
export TMPDIR="$work/tmp"
mkdir -p bin tmp tree/cmake
cp "$source/cmake/quickstart.sh" "$source/cmake/packages.txt" tree/cmake

complain() {
    echo "FAILED: $words: $*"
    for file in out err calls; do sed "s/^/  $file: /" $file; done
    failed=$((failed + 1))
}

# fake NAME [COMMANDS]: a program of this name, which succeeds if there are no commands.
fake() {
    printf '#!/bin/sh\n%s\n' "${2-}" >"bin/$1"
    chmod +x "bin/$1"
}

for command in sh dirname id uname grep awk sed tail cat mkdir mktemp rm chmod env cp date; do
    ln -s "$(command -v $command)" "bin/$command"
done
for command in make mpirun mpicc tc pkg-config; do fake $command; done
fake cc 'cat >/dev/null' # reads the includes that it is asked for
fake cmake "echo \"cmake \$*\" >>$work/calls"

# apt UPDATE INSTALL: makes an apt-get whose verbs do this.
apt() {
    fake apt-get "echo \"apt-get \$*\" >>$work/calls
        echo \"apt-get's own words\"
        case \"\$*\" in
            *update*) $1 ;;
            *install*) $2 ;;
        esac"
}
arrives="cp $work/bin/make $work/bin/mpicc"
nothing_resolves='echo "W: Temporary failure resolving deb.example.org" >&2'

# quickstart CODE WORDS...: the script ends with this code. $enter is put before the command.
quickstart() {
    expected=$1
    shift
    words="$enter quickstart.sh $*"
    : >calls
    $enter env PATH="$work/bin" sh tree/cmake/quickstart.sh "$@" >out 2>err </dev/null
    code=$?
    [ $code -eq "$expected" ] || complain "exit code $code, expected $expected"
}

says() { # says 'TEXT' FILE
    grep -qF -e "$1" "$2" || complain "expected '$1' in $2"
}

never() { # never 'TEXT' FILE
    grep -qF -e "$1" "$2" && complain "expected no '$1' in $2"
}

# ---- words ----
quickstart 0 --help
says 'BUILD=DIR' out
quickstart 2
says 'usage: ' err
quickstart 2 dmeo
quickstart 2 deps -DZERO_NATIVE=OFF

# ---- nothing is missing ----
apt 'exit 1' 'exit 1'
quickstart 0 deps
[ ! -s calls ] || complain "expected no calls"
quickstart 0 demo -DZERO_NATIVE=OFF
says "cmake -S $work/tree -B $work/tree/build -DZERO_NATIVE=OFF" calls
says '--target zero' calls
says '--target demo' calls
never '--target all' calls
quickstart 0 check
says '--target all' calls
says '--target check' calls
rm -r tree/build

# ---- apt-get installs what is missing ----
rm bin/mpicc
apt : "$arrives"
quickstart 0 deps
says 'installing libopenmpi-dev' out
says 'install -y -q --no-install-recommends libopenmpi-dev' calls
never 'own words' out
[ -z "$(ls tmp)" ] || complain "left behind: $(ls tmp)"

rm bin/mpicc
apt 'echo "E: Release file is expired"; exit 100' "$arrives"
quickstart 0 deps
says 'apt-get update failed; going on' out

# A machine with a compiler and without make.
mv bin/make made
apt : "cp $work/made $work/bin/make"
quickstart 0 deps
says 'installing build-essential' out

# ---- apt-get fails ----
rm bin/mpicc
apt "$nothing_resolves" 'echo "E: Unable to locate package libopenmpi-dev"; exit 100'
quickstart 3 deps
says 'the network is not there' err
says 'apt-get: E: Unable to locate package libopenmpi-dev' err
says 'apt-get install libopenmpi-dev' err
says 'dnf install openmpi-devel' err
never 'command:' err
log=$(sed -n 's/.*all that it printed is in //p' err)
says 'own words' "${log:-/dev/null}"

expired='echo "E: Release file for http://deb.example.org/InRelease is expired"; exit 100'
apt "$expired" 'echo "E: Unable to locate package libopenmpi-dev"; exit 100'
quickstart 3 deps
says "lists have expired, or this machine's clock is wrong" err

apt : 'echo "E: You have held broken packages."; exit 100'
quickstart 3 deps
says 'apt-get: E: You have held broken packages.' err
never 'network' err

apt : : # the package does not bring what we look for
quickstart 3 deps
says 'installed, but not found: libopenmpi-dev' err

# ---- nothing can be installed ----
rm bin/id
fake id 'echo 1000'
quickstart 3 deps
never apt-get calls
fake sudo 'echo "sudo $1" >>calls; exec "$@"'
apt : "$arrives"
quickstart 0 deps
says 'sudo env' calls
rm bin/mpicc bin/apt-get
quickstart 3 demo
says 'brew install open-mpi' err
never cmake calls
fake mpicc

# ---- another folder for the build, and a tree that is read-only ----
BUILD=$work/elsewhere quickstart 0 demo
says "-B $work/elsewhere" calls
[ -z "$(ls tree/build)" ] || complain "built in the tree"
if [ "$(id -u)" -eq 0 ]; then
    printf 'mount --bind -o ro tree tree && exec "$@"\n' >read_only.sh
    enter="unshare -m sh read_only.sh"
else
    chmod a-w tree
fi
if $enter sh -c '! mkdir tree/writable' 2>/dev/null; then
    quickstart 2 demo
    says 'BUILD=' err
    BUILD=$work/outside quickstart 0 demo
    says "-B $work/outside" calls
else
    echo "the part with a read-only tree is skipped: mount namespaces are not allowed here"
fi
chmod u+w tree

[ $failed -eq 0 ] || echo "$failed checks failed"
[ $failed -eq 0 ]
