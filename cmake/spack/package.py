# A Spack recipe (Spack 1.0 or newer) that builds the checkout it lies in. As a local repository:
#
#   spack repo create ~/spack-zero zero_local
#   ln -s "$PWD/cmake/spack" ~/spack-zero/spack_repo/zero_local/packages/zero
#   spack repo add ~/spack-zero/spack_repo/zero_local
#   spack install zero ^openmpi
#
# Spack clones what is committed on the branch main. `spack dev-build zero@main` builds the working
# tree instead.
import os

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Zero(CMakePackage):
    """ZeRO training of GPT-style transformers on MPI: a program and a C library."""

    git = "file://" + os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

    license("MIT")

    version("main", branch="main")

    variant("native", default=False, description="Compile for the build machine's CPU only")
    variant("tests", default=False, description="Build the tests and the benchmarks")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+tests")  # for the test of the headers
    depends_on("cmake@3.20:", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("mpi@3.1:")
    depends_on("blas")  # we measure with openblas
    depends_on("hwloc@2.1:")
    depends_on("jansson")
    depends_on("xxhash@0.8:")
    depends_on("pcre2@10.30:")
    depends_on("utf8proc")
    depends_on("random123", type="build")
    depends_on("cmocka", type="build", when="+tests")

    def cmake_args(self):
        return [
            self.define_from_variant("ZERO_NATIVE", "native"),
            self.define_from_variant("ZERO_TESTS", "tests"),
            self.define_from_variant("ZERO_BENCH", "tests"),
        ]
