# names.sh COMPILER ROOT: no file gives a function or an array of its own a name that unistd.h
# declares, such as write or alarm. Some MPIs and libraries include unistd.h in their headers, and
# such a file would then not compile.
compiler=$1 root=$2
work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT

printf '#define _GNU_SOURCE\n#include <unistd.h>\n' >header.c
"$compiler" -E header.c | grep -v '^#' | grep -oE '[a-z][a-z0-9_]* *\(' | tr -d ' (' | sort -u >names
grep -qx write names && grep -qx alarm names || {
    echo "FAILED: $compiler -E finds no write() and no alarm() in unistd.h"
    exit 1
}

# collisions <FILES: prints "file:line: name" for what these files declare static, at the left
# margin, if the header has it, too.
collisions() {
    tr '\n' '\0' | xargs -0 awk '/^(__attribute__.* )?static / {
        sub(/^__attribute__.* static /, "static ")
        sub(/[[(=;].*/, "")
        sub(/ +$/, "")
        gsub(/\*/, " ")
        print FILENAME ":" FNR ": " $NF
    }' | awk 'NR == FNR { taken[$1]; next } $NF in taken' names -
}

cat >bad.c <<'END'
static void write(int x)
static const char *const alarm[] = {
__attribute__((noreturn)) static int *pause(void)
END
[ "$(echo bad.c | collisions | tr '\n' ' ')" = 'bad.c:1: write bad.c:2: alarm bad.c:3: pause ' ] || {
    echo "FAILED: expected write, alarm and pause to be found in"
    cat bad.c
    exit 1
}

find "$root"/src "$root"/gpu "$root"/include "$root"/tests "$root"/bench \
    -name '*.[ch]' -o -name '*.cu' -o -name '*.cpp' >files
[ "$(wc -l <files)" -gt 100 ] || {
    echo "FAILED: there are only $(wc -l <files) files below $root"
    exit 1
}
collisions <files >found
[ -s found ] || exit 0
echo "FAILED: unistd.h has these names, too; choose others:"
sed "s|^$root/||" found
exit 1
