# alone.sh PROGRAM: it holds a lesson, and its loader needs no MPI library.
set -eu
"$1" >alone.out
grep -q '^1.1 = 4800$' alone.out || { echo "no answer:"; cat alone.out; exit 1; }
command -v ldd >/dev/null || exit 0
ldd "$1" >alone.ldd
! grep -iE 'libmpi|libopen-|libpmix' alone.ldd
