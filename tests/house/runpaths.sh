# runpaths.sh READELF DIR...: no program or library below the directories searches the current
# directory for libraries, which any user may have filled: no empty and no relative element.
readelf=$1
shift
read_any=0
failed=0
found=$(mktemp) || exit 1
trap 'rm -f "$found"' EXIT
# Objects of the compiler have no dynamic section; scripts and data are no ELF files.
find "$@" -type f ! -name '*.[oa]' \( -perm -u+x -o -name '*.so*' \) >"$found"
while read -r file; do
    head -c 4 "$file" | grep -q ELF || continue
    read_any=$((read_any + 1))
    path=$("$readelf" -d "$file" | sed -n 's/.*(R\(UN\)\{0,1\}PATH).*\[\(.*\)\]$/\2:/p')
    rest=$path
    while [ -n "$rest" ]; do
        case ${rest%%:*} in
            /* | '$ORIGIN' | '$ORIGIN/'*) ;;
            *)
                echo "FAILED: $file looks for libraries in '${rest%%:*}', of [${path%:}]"
                failed=1
                ;;
        esac
        rest=${rest#*:}
    done
done <"$found"
echo "$read_any programs and libraries were read"
[ $read_any -gt 0 ] || failed=1
exit $failed
