# Functions that make our targets. All of them link zero_flags, which has the compiler's flags.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckLinkerFlag)

add_library(zero_flags INTERFACE)
target_compile_features(zero_flags INTERFACE c_std_11)
target_compile_definitions(zero_flags INTERFACE
  _POSIX_C_SOURCE=200809L _DEFAULT_SOURCE _DARWIN_C_SOURCE)
target_include_directories(zero_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
# Without contraction sums are equal on every CPU. An fma must be written as such.
target_compile_options(zero_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  -fopenmp-simd -fno-math-errno -fno-trapping-math -ffp-contract=off
  $<$<CONFIG:Release>:-O3>)
target_link_libraries(zero_flags INTERFACE m)
# GCC 12 for ARM (seen with 12.2) has an internal error in loops with fmax(), so there fmax() stays
# a call.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$" AND
   CMAKE_C_COMPILER_VERSION VERSION_GREATER_EQUAL 12 AND CMAKE_C_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(zero_flags INTERFACE -fno-builtin-fmax -fno-builtin-fmin)
endif()
# Compilers for CPUs other than x86 may know only -mcpu.
if(ZERO_NATIVE)
  check_c_compiler_flag(-march=native ZERO_HAVE_MARCH_NATIVE)
  if(ZERO_HAVE_MARCH_NATIVE)
    target_compile_options(zero_flags INTERFACE -march=native)
  else()
    check_c_compiler_flag(-mcpu=native ZERO_HAVE_MCPU_NATIVE)
    if(NOT ZERO_HAVE_MCPU_NATIVE)
      message(FATAL_ERROR "${CMAKE_C_COMPILER} takes neither -march=native nor -mcpu=native: it "
        "cannot compile for this machine's CPU. Configure with -DZERO_NATIVE=OFF.")
    endif()
    target_compile_options(zero_flags INTERFACE -mcpu=native)
  endif()
endif()
# An overflow of the stack or of a buffer ends the program. Checked calls of the C library need an
# optimizing compiler; some distributions set another level for all programs. Sanitizers have checks
# of their own.
if(NOT ZERO_SANITIZE)
  foreach(flag stack-protector-strong stack-clash-protection cf-protection)
    check_c_compiler_flag(-f${flag} ZERO_HAVE_${flag})
    if(ZERO_HAVE_${flag})
      target_compile_options(zero_flags INTERFACE -f${flag})
    endif()
  endforeach()
  target_compile_options(zero_flags INTERFACE
    "$<$<CONFIG:Release,RelWithDebInfo>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3>")
  check_linker_flag(C -Wl,-z,now ZERO_HAVE_BINDING_AT_START)
  if(ZERO_HAVE_BINDING_AT_START)
    target_link_options(zero_flags INTERFACE -Wl,-z,now)
  endif()
endif()
set(zero_sanitizers -fsanitize=address,undefined)
if(ZERO_SANITIZE) # lines are all that a report shows; variables would take a tenth of the build
  target_compile_options(zero_flags INTERFACE -O1 -g1 -fno-omit-frame-pointer ${zero_sanitizers}
    -fno-sanitize-recover=undefined
    $<$<C_COMPILER_ID:Clang>:-Wno-pass-failed>) # about loops that -O1 does not vectorize
  target_link_options(zero_flags INTERFACE ${zero_sanitizers})
endif()
if(ZERO_FUZZ) # libFuzzer sees which of our branches an input reaches
  set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer,address)
  check_c_source_compiles("int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n);
    int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { return !d && n; }"
    ZERO_HAVE_LIBFUZZER)
  unset(CMAKE_REQUIRED_FLAGS)
  if(NOT ZERO_HAVE_LIBFUZZER)
    message(FATAL_ERROR "ZERO_FUZZ=ON: ${CMAKE_C_COMPILER} does not know -fsanitize=fuzzer. "
      "Use clang with its run-time library "
      "(Debian and Ubuntu: libclang-rt-14-dev, or your clang's number).")
  endif()
  target_compile_options(zero_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Static and shared libzero have the same objects. They export only what include/zero declares.
function(zero_of_libzero target)
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
endfunction()

# Installed objects find MPI and BLAS where the loader does not look. They are built with the path that
# they keep: CMake would fill up another one with empty elements, which mean the current directory.
function(zero_installed target)
  set_target_properties(${target} PROPERTIES
    INSTALL_RPATH_USE_LINK_PATH ON BUILD_WITH_INSTALL_RPATH ON)
endfunction()

# zero_layer(math FILES cpu.c naive.c LINKS zero_base BLAS::BLAS): a folder of src/ as a
# library. It links lower folders only, so an upward call cannot link.
function(zero_layer name)
  cmake_parse_arguments(ARG "" "" "FILES;LINKS" ${ARGN})
  add_library(zero_${name} STATIC ${ARG_FILES})
  target_link_libraries(zero_${name} PUBLIC zero_flags ${ARG_LINKS})
  zero_of_libzero(zero_${name})
endfunction()

# zero_kernels(out cpu_kernels LEVELS v3 v4 [OPTIONS ...]): compiles cpu_kernels.c once per
# instruction set into the table zero_cpu_kernels_<level>; the program chooses one at run time.
# On x86-64 without ZERO_NATIVE the sets are x86-64 itself (base) and LEVELS above it; otherwise
# base is the only one. Sets `out` to the objects, which libzero contains too, and out_choose to ON
# if there is a choice.
set(zero_level_v3 x86-64-v3 -march=x86-64-v3)
set(zero_level_v4 x86-64-v4 -march=x86-64-v4)
set(zero_level_bf16 x86-64-v4+bf16 -march=x86-64-v4 -mavx512bf16)

function(zero_kernel_table source level name)
  add_library(zero_${source}_${level} OBJECT ${source}.c)
  target_link_libraries(zero_${source}_${level} PRIVATE zero_flags)
  target_compile_options(zero_${source}_${level} PRIVATE ${ARGN})
  target_compile_definitions(zero_${source}_${level} PRIVATE
    ZERO_KERNELS=zero_${source}_${level} ZERO_KERNELS_NAME="${name}")
  zero_of_libzero(zero_${source}_${level})
endfunction()

function(zero_kernels out source)
  cmake_parse_arguments(ARG "" "" "LEVELS;OPTIONS" ${ARGN})
  set(objects $<TARGET_OBJECTS:zero_${source}_base>)
  set(choose OFF)
  if(ZERO_NATIVE)
    zero_kernel_table(${source} base native ${ARG_OPTIONS})
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(choose ON)
    zero_kernel_table(${source} base x86-64 -march=x86-64)
    foreach(level IN LISTS ARG_LEVELS)
      zero_kernel_table(${source} ${level} ${zero_level_${level}} ${ARG_OPTIONS})
      list(APPEND objects $<TARGET_OBJECTS:zero_${source}_${level}>)
    endforeach()
  else()
    zero_kernel_table(${source} base ${CMAKE_SYSTEM_PROCESSOR})
  endif()
  set(${out} ${objects} PARENT_SCOPE)
  set(${out}_choose ${choose} PARENT_SCOPE)
endfunction()

# zero_test_library(name LINKS zero_comm FILES x.c y.c): code that several tests link.
function(zero_test_library name)
  cmake_parse_arguments(ARG "" "" "FILES;LINKS" ${ARGN})
  add_library(${name} STATIC ${ARG_FILES})
  target_link_libraries(${name} PUBLIC zero_flags ${ARG_LINKS} PkgConfig::cmocka)
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/tests)
endfunction()

# zero_test(test_x LINKS zero_train RANKS 1 2 3 4 LABELS quick SOURCES more.c): test_x.c, run by mpirun
# at several world sizes (3 finds what powers of two hide), or alone without RANKS. The tests of a
# folder are one program, of which the first argument names the test; those with RANKS are a second
# one, so that the others link no more than they need. PROGRAM names another: a test that needs link
# options of its own is its own program, PROGRAM test_x. `cmake --build build --target test_x` builds
# the program that has it. `check` runs it on 3 ranks, or on the next number of RANKS, the others have
# the label ci; EVERY: `check` runs all.
function(zero_test name)
  cmake_parse_arguments(ARG "EVERY" "TIMEOUT;SUFFIX;PROGRAM"
    "LINKS;RANKS;LABELS;SOURCES;ARGS;DEFINITIONS" ${ARGN})
  if(NOT ARG_PROGRAM)
    get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
    set(ARG_PROGRAM tests_${folder})
    if(ARG_RANKS)
      string(APPEND ARG_PROGRAM _ranks)
    endif()
  endif()
  zero_test_source(${ARG_PROGRAM} ${name} ${name}.c)
  target_sources(${ARG_PROGRAM} PRIVATE ${ARG_SOURCES})
  target_link_libraries(${ARG_PROGRAM} PRIVATE zero_flags ${ARG_LINKS})
  set_property(SOURCE ${name}.c APPEND PROPERTY COMPILE_DEFINITIONS ${ARG_DEFINITIONS})
  zero_build_for_label(${ARG_PROGRAM} "${ARG_LABELS}")
  if(ARG_RANKS)
    target_link_libraries(${ARG_PROGRAM} PRIVATE MPI::MPI_C)
  endif()
  if(ARG_EVERY)
    set(every EVERY)
  endif()
  zero_test_run(${name} "${ARG_SUFFIX}" ${every} RANKS ${ARG_RANKS} LABELS ${ARG_LABELS}
    ARGS ${ARG_ARGS} TIMEOUT ${ARG_TIMEOUT})
endfunction()

# The targets quick_tests, kernels_tests and mpich_tests build what tests with a label need.
function(zero_build_for_label target labels)
  if(labels MATCHES "quick|faults")
    add_dependencies(quick_tests ${target})
  endif()
  foreach(label kernels mpich)
    if(label IN_LIST labels)
      add_dependencies(${label}_tests ${target})
    endif()
  endforeach()
endfunction()

# Adds a test to a program, which its first test makes.
function(zero_test_source program name source)
  if(NOT TARGET ${program})
    add_executable(${program})
    target_link_libraries(${program} PRIVATE PkgConfig::cmocka)
    target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_compile_definitions(${program} PRIVATE TEST_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    cmake_language(EVAL CODE "cmake_language(DEFER CALL zero_write_test_list ${program})")
  endif()
  target_sources(${program} PRIVATE ${source})
  set_property(GLOBAL PROPERTY zero_program_of_${name} ${program})
  set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS TEST_MAIN)
  # Half the time of -O3, and a test spends its own in what it tests.
  set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:-O1>)
  if(NOT program STREQUAL name)
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS main=main_of_${name})
    set_property(TARGET ${program} APPEND PROPERTY zero_tests ${name}=${source})
    add_custom_target(${name} DEPENDS ${program})
  endif()
endfunction()

# At the end of a folder: the main() of a program with its tests, each of which has a main() that
# was given another name. It takes arguments or none, as its file says.
function(zero_write_test_list program)
  get_target_property(tests ${program} zero_tests)
  if(NOT tests)
    return()
  endif()
  set(declarations "")
  set(rows "")
  foreach(test IN LISTS tests)
    string(REGEX MATCH "^[^=]+" name ${test})
    string(REGEX REPLACE "^[^=]+=" "" source ${test})
    file(STRINGS ${source} main REGEX "^int main\\(void\\)")
    if(main)
      string(APPEND declarations "int main_of_${name}(void);\n")
      string(APPEND rows "    {\"${name}\", main_of_${name}, NULL},\n")
    else()
      string(APPEND declarations "int main_of_${name}(int argc, char **argv);\n")
      string(APPEND rows "    {\"${name}\", NULL, main_of_${name}},\n")
    endif()
  endforeach()
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${program}.c)
  configure_file(${PROJECT_SOURCE_DIR}/tests/support/tests.c.in ${list} @ONLY)
  target_sources(${program} PRIVATE ${list})
endfunction()

# Sets `out` to the command line of a test.
function(zero_test_command out name)
  get_property(program GLOBAL PROPERTY zero_program_of_${name})
  set(command $<TARGET_FILE:${program}>)
  if(NOT program STREQUAL name)
    list(APPEND command ${name})
  endif()
  set(${out} ${command} PARENT_SCOPE)
endfunction()

# zero_test_run(test_x .long RANKS 3 4 ARGS 3000 TIMEOUT 300 LABELS long): runs a test of
# zero_test() once more, as test_x.long.np3 and test_x.long.np4.
function(zero_test_run name suffix)
  cmake_parse_arguments(ARG "EVERY" "TIMEOUT" "RANKS;LABELS;ARGS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  zero_test_command(command ${name})
  if(NOT ARG_RANKS)
    add_test(NAME ${name}${suffix}
      COMMAND ${CMAKE_CROSSCOMPILING_EMULATOR} ${command} ${ARG_ARGS})
    zero_test_settings(${name}${suffix} 1 ${ARG_TIMEOUT} "unit;${ARG_LABELS}")
  endif()
  set(checked 0)
  foreach(n IN LISTS ARG_RANKS)
    if(checked LESS 3)
      set(checked ${n})
    endif()
  endforeach()
  foreach(n IN LISTS ARG_RANKS)
    zero_mpi_command(launch ${n})
    add_test(NAME ${name}${suffix}.np${n} COMMAND ${launch} ${command} ${ARG_ARGS})
    zero_test_settings(${name}${suffix}.np${n} ${n} ${ARG_TIMEOUT} "mpi;${ARG_LABELS}")
    if(NOT ARG_EVERY AND NOT n EQUAL checked)
      zero_label(ci ${name}${suffix}.np${n})
    endif()
  endforeach()
endfunction()

# Sets `out` to the launch line for n ranks, which works with fewer cores, too. It ends with the
# emulator of a foreign CPU, if there is one.
function(zero_mpi_command out n)
  set(${out} ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${n} ${MPIEXEC_PREFLAGS}
    --map-by :OVERSUBSCRIBE --bind-to none ${CMAKE_CROSSCOMPILING_EMULATOR} PARENT_SCOPE)
endfunction()

# Open MPI refuses to run as root unless two variables allow it, and does not notice when a
# container forbids processes to read each other's memory. Two ranks on two cores would poll without
# giving way to the tests beside them. Other MPIs ignore these variables.
set(ZERO_MPI_ENVIRONMENT OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1)

function(zero_test_settings name ranks timeout labels)
  # In a bare chroot the host name does not resolve, and MPI would wait 5 s at each start. Without
  # /sys hwloc complains on standard error, where tests expect only our message.
  set(environment ${ZERO_MPI_ENVIRONMENT} OPENBLAS_NUM_THREADS=1 OMP_WAIT_POLICY=passive HWLOC_HIDE_ERRORS=2
    "RES_OPTIONS=timeout:1 attempts:1" ZERO_PLUGINS=${PROJECT_BINARY_DIR})
  # The limit ends a test that hangs. On a machine that has other work a good one needs ten or twenty
  # times as long as alone.
  math(EXPR timeout "4 * ${timeout}")
  if(ZERO_SANITIZE)
    set(suppressions ${PROJECT_SOURCE_DIR}/tests/support/lsan.supp)
    string(JOIN ":" lsan
      suppressions=${suppressions} fast_unwind_on_malloc=0 print_suppressions=0)
    list(APPEND environment LSAN_OPTIONS=${lsan} UBSAN_OPTIONS=print_stacktrace=1)
    math(EXPR timeout "5 * ${timeout}")
  endif()
  # MPICH never yields a processor, so ranks that wait take turns with those that they wait for.
  if(MPI_C_LIBRARIES MATCHES "mpich" AND ranks GREATER 2)
    math(EXPR timeout "5 * ${timeout}")
  endif()
  if(CMAKE_CROSSCOMPILING_EMULATOR)
    math(EXPR timeout "20 * ${timeout}")
  endif()
  set_tests_properties(${name} PROPERTIES PROCESSORS ${ranks} TIMEOUT ${timeout}
    LABELS "${labels}" ENVIRONMENT "${environment}")
endfunction()

# zero_label(ci names...): gives these tests one more label.
function(zero_label label)
  foreach(name IN LISTS ARGN)
    set_property(TEST ${name} APPEND PROPERTY LABELS ${label})
  endforeach()
endfunction()

# zero_mostly_waits(names...): the processes of these tests wait for each other's start and end, for
# disks, links and time limits, and leave more than half of two cores idle. So one processor is
# reserved, however many ranks a test has, and another test runs beside it. They start first, since
# tests that need all processors leave no such room.
function(zero_mostly_waits)
  set_tests_properties(${ARGN} PROPERTIES PROCESSORS 1 COST 1000)
endfunction()

# zero_may_skip(name): the test skips itself, with exit code 77, where it cannot run. It fails there
# if ZERO_REQUIRE has one of its labels.
function(zero_may_skip name)
  get_test_property(${name} LABELS labels)
  set_property(GLOBAL APPEND PROPERTY zero_labels_that_skip ${labels})
  foreach(label IN LISTS ZERO_REQUIRE)
    if(label IN_LIST labels)
      return()
    endif()
  endforeach()
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()

# Called after the last test.
function(zero_check_required_labels)
  get_property(known GLOBAL PROPERTY zero_labels_that_skip)
  list(REMOVE_DUPLICATES known)
  list(REMOVE_ITEM known "")
  foreach(label IN LISTS ZERO_REQUIRE)
    if(NOT label IN_LIST known)
      list(JOIN known " " known)
      message(FATAL_ERROR "ZERO_REQUIRE=${label}: no test with this label skips itself. Labels of "
        "tests that do: ${known}.")
    endif()
  endforeach()
endfunction()
