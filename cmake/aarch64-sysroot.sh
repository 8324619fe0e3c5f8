# aarch64-sysroot.sh DIR: unpacks an ARM Debian's headers and libraries of packages.txt into DIR, for
# cmake/aarch64-linux-gnu.cmake. Nothing in it is executed, and this machine's own packages stay as they are.
set -eu
mkdir -p "$1"
root=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
apt=$root/apt # lists and packages: beside those of this machine
mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
: >"$apt/status"

arm() { # arm apt-get's arguments
    apt-get -qq -y -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State="$apt/state" \
        -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" -o Debug::NoLocking=1 \
        -o APT::Sandbox::User=root -o APT::Get::Download-Only=1 -o APT::Install-Recommends=0 "$@"
}

arm update
# Column 2 of libraries and headers, and what a compiler needs.
# shellcheck disable=SC2046 # words
arm install libc6-dev libgcc-12-dev libgomp1 libopenmpi-dev \
    $(awk '$1 ~ /^(module|header):/ { print $2 }' "$here/packages.txt")
for package in "$apt"/cache/archives/*.deb; do
    dpkg-deb -x "$package" "$root"
done
rm -r "$apt"

# Packages link to files of the root they are installed in. A link such as libm.so's that led to this machine would
# be passed over for libm.a, whose functions need hidden ones of libc.
find "$root" -type l -lname '/*' | while read -r link; do
    ln -sfn "$root$(readlink "$link")" "$link"
done

# What the packages' scripts would link.
cd "$root/usr/lib/aarch64-linux-gnu"
for of in openblas-pthread openmpi/lib; do
    for file in "$of"/*.so*; do
        [ -e "${file##*/}" ] || ln -s "$file" .
    done
    for file in "$of"/pkgconfig/*; do
        [ -e "pkgconfig/${file##*/}" ] || ln -s "../$file" pkgconfig
    done
done
