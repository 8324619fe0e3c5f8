# Builds for 64-bit ARM on Debian or Ubuntu for another CPU. qemu runs the tests.
#
#   apt-get install gcc-aarch64-linux-gnu qemu-user-static
#   sh cmake/aarch64-sysroot.sh DIR
#   cmake -B build-aarch64 -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64-linux-gnu.cmake \
#       -DCMAKE_SYSROOT=DIR -DZERO_NATIVE=OFF
#
# DIR holds an ARM Debian's unpacked libc6-dev, libopenmpi-dev and the libraries of packages.txt.
# Nothing in it is executed: this machine's mpirun starts the ranks, so its version must match.
# Tests see the emulator's affinity and resident memory.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${CMAKE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)

set(libraries ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${libraries}/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)

# Open MPI's wrappers give the directories of this machine, so we do not use them.
set(MPI_C_COMPILER ${CMAKE_C_COMPILER} CACHE FILEPATH "")
set(MPI_C_COMPILER_INCLUDE_DIRS ${libraries}/openmpi/include CACHE STRING "")
set(MPI_C_LIB_NAMES mpi CACHE STRING "")
set(MPI_mpi_LIBRARY ${libraries}/libmpi.so CACHE FILEPATH "")
