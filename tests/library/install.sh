# install.sh CMAKE SOURCE BUILD PREFIX LIBDIR INTO: the installation writes the expected files below
# PREFIX, and nothing elsewhere. The tree is then moved to INTO, where the tests install_* use it.
cmake=$1 source=$2 build=$3 prefix=$4 libdir=$5 into=$6
stage=$into.stage
failed=0
rm -rf "$into" "$stage"
mkdir -p "$(dirname "$into")"
trap 'rm -rf "$stage"' EXIT

DESTDIR=$stage "$cmake" --install "$build" >/dev/null || exit 1

grep -v "^$prefix/" "$build/install_manifest.txt" && echo "FAILED: outside $prefix" && failed=1
{
    echo bin/zero
    (cd "$source" && ls include/zero/*.h)
    for file in libzero.a libzero.so libzero.so.0 libzero.so.VERSION libzero_collective.so \
        libzero_collective.so.0 libzero_collective.so.VERSION pkgconfig/zero.pc \
        cmake/zero/zeroConfig.cmake cmake/zero/zeroConfigVersion.cmake \
        cmake/zero/zeroTargets.cmake cmake/zero/zeroTargets-CONFIG.cmake; do
        echo "$libdir/$file"
    done
    [ ! -f "$build/libzero_cuda.so" ] || echo "$libdir/libzero_cuda.so"
    echo share/doc/zero/LICENSE
    (cd "$source/src" && ls python/zero_torch/*.py) | sed 's,^,share/zero/,'
    version=$("$build/zero" version | sed -n 's/^zero \([0-9.]*\).*/\1/p')
    for file in README.md pyproject.toml zero_torch_wheel.py zero_torch/place.py \
        zero_torch-"$version".dist-info/METADATA zero_torch-"$version".dist-info/entry_points.txt; do
        echo "share/zero/python/$file"
    done
    echo share/zero/slurm/README.md
    echo share/zero/slurm/zero.sbatch
    for page in "$build"/man/*.[17]; do
        [ ! -f "$page" ] || echo "share/man/man${page##*.}/$(basename "$page")"
    done
} | sort >"$into.expected"
(cd "$stage$prefix" && find . -type f -o -type l) |
    sed 's,^\./,,; s,\(libzero[a-z_]*\)\.so\.[0-9]*\.[0-9.]*$,\1.so.VERSION,
        s,\(zeroTargets\)-[a-z]*\.cmake$,\1-CONFIG.cmake,' | sort >"$into.found"
(cd "$stage" && find . -type f -o -type l) | grep -v "^\.$prefix/" &&
    echo "FAILED: outside $prefix" && failed=1
diff "$into.expected" "$into.found" || {
    echo "FAILED: expected (<) and installed (>) differ"
    failed=1
}

# names PATH FILE: prints the lines in which the path stands alone or begins another; /zero does not
# stand in include/zero/train.h. A flag may come before it.
names() {
    escaped=$(printf '%s' "$1" | sed 's/[][\\.*^$+?(){}|]/\\&/g')
    grep -nE "(^|[^[:alnum:]_./}-]|-[IL])$escaped(/|[^[:alnum:]_.-]|\$)" "$2"
}

mv "$stage$prefix" "$into"
for file in "$into/bin/zero" "$into/$libdir"/libzero.so "$into/$libdir"/pkgconfig/zero.pc \
    "$into/$libdir"/cmake/zero/*.cmake; do
    case $file in
        *.cmake | *.pc) names "$source" "$file" || names "$build" "$file" || names "$prefix" "$file" ;;
        *) readelf -d "$file" | grep -E 'R(UN)?PATH' | grep -F "$build" ;;
    esac && echo "FAILED: $file contains a path of the build" && failed=1
done
sh "$source/tests/house/runpaths.sh" readelf "$into" || failed=1
"$into/bin/zero" --version || failed=1
rm -f "$into.expected" "$into.found"
exit $failed
