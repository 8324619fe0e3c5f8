# The project's dependencies. All are required; the error for a missing one says how to get it.
include(CheckCSourceCompiles)
file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/packages.txt rows REGEX "^[a-z]+:")
list(TRANSFORM rows REPLACE "^[^ ]+ +([^ ]+).*" "\\1")
list(REMOVE_DUPLICATES rows)
list(JOIN rows " " apt_names)

macro(zero_missing what)
  message(FATAL_ERROR "${what} was not found. On Debian and Ubuntu: "
    "sh cmake/quickstart.sh deps, or\n  apt-get install ${apt_names}\n"
    "Elsewhere: install it, or point CMAKE_PREFIX_PATH at it.")
endmacro()

# An imported target is visible in the directory that finds it and below. A parent project links
# them with libzero, so those that we find become global. Those that it found stay as they are.
set(found_above "")
foreach(target Threads::Threads MPI::MPI_C BLAS::BLAS)
  if(TARGET ${target})
    list(APPEND found_above ${target})
  endif()
endforeach()

find_package(Threads REQUIRED)
find_package(PkgConfig QUIET)
if(NOT PKG_CONFIG_FOUND)
  zero_missing("pkg-config")
endif()

# Debian keeps several MPIs side by side (mpicc.mpich, mpiexec.mpich). The launcher must be that of
# the compiler, or every rank would be alone.
if(MPI_C_COMPILER MATCHES "mpicc(\\.[a-z]+)$")
  find_program(MPIEXEC_EXECUTABLE mpiexec${CMAKE_MATCH_1})
endif()
find_package(MPI 3.1 COMPONENTS C)
if(NOT MPI_C_FOUND)
  zero_missing("MPI (3.1 or newer, with its C compiler wrapper)")
endif()
find_package(BLAS)
if(NOT BLAS_FOUND)
  zero_missing("A BLAS (any one links; we measure with OpenBLAS)")
endif()

# Threads inside a rank, src/math/team.c. Programs link OpenMP's library with libzero, but are not
# compiled for OpenMP: so its files are linked, and not its target.
set(ZERO_HAVE_OPENMP OFF)
set(ZERO_OPENMP_LIBRARIES "")
if(ZERO_OPENMP)
  find_package(OpenMP COMPONENTS C QUIET)
  set(ZERO_HAVE_OPENMP ${OpenMP_C_FOUND})
endif()
if(ZERO_HAVE_OPENMP)
  set(ZERO_OPENMP_LIBRARIES ${OpenMP_C_LIBRARIES})
  list(FILTER ZERO_OPENMP_LIBRARIES EXCLUDE REGEX "libpthread") # Threads::Threads has it
endif()

foreach(target Threads::Threads MPI::MPI_C BLAS::BLAS)
  if(NOT target IN_LIST found_above)
    set_target_properties(${target} PROPERTIES IMPORTED_GLOBAL ON)
  endif()
endforeach()

# zero_library(hwloc 2.1): the imported target PkgConfig::hwloc, of this version or newer.
macro(zero_library library)
  pkg_check_modules(${library} QUIET IMPORTED_TARGET GLOBAL ${library})
  if(NOT ${library}_FOUND AND "${ARGN}" STREQUAL "")
    zero_missing("${library}")
  elseif(NOT ${library}_FOUND)
    zero_missing("${library} (${ARGN} or newer)")
  elseif(${library}_VERSION VERSION_LESS "${ARGN}")
    zero_missing("${library} ${ARGN} or newer (found ${${library}_VERSION})")
  endif()
endmacro()

zero_library(hwloc 2.1) # older versions cannot show what a container forbids
zero_library(jansson)
zero_library(libxxhash 0.8) # since then XXH3 has fixed results
# Built so, it hashes by the widest vectors of the CPU that it runs on: the same bits, sooner.
set(CMAKE_REQUIRED_LIBRARIES PkgConfig::libxxhash)
check_c_source_compiles("#include <xxh_x86dispatch.h>
  int main(void) { return (int)XXH3_64bits(\"\", 0); }" ZERO_HASH_DISPATCHES)
unset(CMAKE_REQUIRED_LIBRARIES)
if(ZERO_HASH_DISPATCHES)
  target_compile_definitions(PkgConfig::libxxhash INTERFACE ZERO_HASH_DISPATCHES)
endif()
zero_library(libpcre2-8 10.30) # since then matches need no stack of ours
zero_library(libutf8proc)

find_path(RANDOM123_INCLUDE Random123/philox.h)
if(NOT RANDOM123_INCLUDE)
  zero_missing("Random123 (header-only)")
endif()
add_library(zero_random123 INTERFACE)
target_include_directories(zero_random123 SYSTEM INTERFACE ${RANDOM123_INCLUDE})

if(ZERO_TESTS)
  pkg_check_modules(cmocka QUIET IMPORTED_TARGET cmocka)
  if(NOT cmocka_FOUND)
    zero_missing("CMocka (or configure with -DZERO_TESTS=OFF)")
  endif()
endif()
