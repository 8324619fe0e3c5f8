# cmake -DCHECK=<CheckLayers.cmake> -DWORK=<folder> -P negative.cmake: CheckLayers finds every
# kind of violation that it claims to find. Each case is a clean tree with one bad file.
cmake_minimum_required(VERSION 3.20)
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/ZeroLayers.cmake)
string(REPLACE "," ";" layers "${zero_floors}")

function(make_tree)
  file(REMOVE_RECURSE ${WORK})
  foreach(layer IN LISTS layers)
    file(WRITE ${WORK}/src/${layer}/${layer}.h "#pragma once\n")
  endforeach()
  file(WRITE ${WORK}/include/zero/status.h "#pragma once\n#include <stdint.h>\n")
  file(WRITE ${WORK}/include/zero/comm.h "#include <mpi.h>\nvoid f(MPI_Comm c);\n")
  file(WRITE ${WORK}/src/comm/comm.c "#include \"comm/comm.h\"\n#include <mpi.h>\nMPI_Comm c;\n")
  file(WRITE ${WORK}/src/nn/nn.c [[
#include "nn/nn.h"

#include "base/base.h"
#include "zero/status.h"
/* MPI_Send is what comm/ calls; #include "train/train.h" is what we don't
 * do. */
static const char quote = '"'; // MPI_Recv
static const char *text = "/* MPI_Wait */ // ";
#define ZERO_ERR_MPI 1
]])
  file(WRITE ${WORK}/gpu/cuda.c "#include \"gpu/kernels.h\"\n#include <cuda_runtime.h>\n")
  file(WRITE ${WORK}/gpu/kernels.h "#include \"math/math.h\"\n")
endfunction()

function(run_check out_result out_text)
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${WORK} -P ${CHECK}
    RESULT_VARIABLE result ERROR_VARIABLE text)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  set(${out_result} ${result} PARENT_SCOPE)
  set(${out_text} "${text}" PARENT_SCOPE)
endfunction()

# The check fails and says `message` once if `file` holds `content`.
function(must_fail file content message)
  make_tree()
  file(WRITE ${WORK}/${file} "${content}")
  run_check(result text)
  string(FIND "${text}" "${file}: ${message}" at)
  string(REGEX MATCHALL "(src|include|gpu)/[a-zA-Z/.]+: " complaints "${text}")
  list(LENGTH complaints n)
  if(result EQUAL 0 OR at EQUAL -1 OR NOT n EQUAL 1)
    message(SEND_ERROR "${file} with '${content}' gave ${result}, '${text}'; "
      "expected '${message}' once")
  endif()
endfunction()

# The check fails if `file` includes `path`: the message quotes it and says `why`.
function(must_not_include file path why)
  must_fail(${file} "#include \"${path}\"\n" "\"${path}\": ${why}")
endfunction()

make_tree()
run_check(result text)
if(NOT result EQUAL 0)
  message(SEND_ERROR "a clean tree fails: ${text}")
endif()

# Floors.
must_not_include(src/base/a.c math/math.h "math/ is not its own folder")
must_fail(src/train/a.h " #  include \"cli/cli.h\"\n" "\"cli/cli.h\": cli/ is not its own folder")
must_not_include(src/math/a.c gpu/kernels.h "gpu/ is not its own folder")
must_fail(src/math/a.c "#include <train/train.h>\n" "<train/train.h>: our own headers take quotes")
must_fail(src/math/a.c "/* a */ /* b\n*/ #include \"nn/nn.h\"\n" "\"nn/nn.h\": nn/ is not")
must_not_include(src/lists/a.c math/math.h "math/ is not its own folder")
must_not_include(src/math/a.c comm/comm.h "comm/ is not its own folder")
must_not_include(src/simulation/a.c checkpoint/checkpoint.h "checkpoint/ is not its own folder")
must_not_include(src/engine/a.c simulation/simulation.h "simulation/ is not its own folder")
must_fail(src/math/CMakeLists.txt "zero_layer(math FILES math.c\n  LINKS zero_base zero_comm)\n"
  "links zero_comm: comm/ is not a lower floor")
must_fail(src/base/CMakeLists.txt "zero_layer(base FILES a.c LINKS zero_train)\n"
  "links zero_train: train/ is not a lower floor")
must_not_include(include/zero/a.h base/base.h "base/ is not its own folder")
must_not_include(gpu/a.cu comm/comm.h "comm/ is not its own folder")

# The form of an include.
must_not_include(src/nn/a.c nn.h "an include starts with its folder")
must_not_include(src/nn/a.c ../base/base.h "an include starts")
must_not_include(src/nn/a.c base/../train/train.h "an include starts")
must_fail(src/nn/a.c "#include HEADER\n" "'#include HEADER': an include names its file")
must_not_include(src/nn/a.c base/generated.h "there is no such header")

# MPI and CUDA.
must_fail(src/nn/a.c "#include <mpi.h>\n" "<mpi.h>: MPI outside comm/ and cli/")
must_fail(src/train/a.c "void f(void) { MPI_Barrier(0); }\n" "MPI_Barrier: MPI outside")
must_fail(src/base/a.h "extern MPI_Comm world[MPI_MAX_ERROR_STRING];\n"
  "MPI_Comm, MPI_MAX_ERROR_STRING: MPI")
must_fail(src/math/a.c "char a = '\\''; int x = PMPI_Init(); // it's\n" "PMPI_Init: MPI outside")
must_fail(include/zero/a.h "typedef MPI_Comm zero_comm;\n" "MPI_Comm: MPI outside")
must_fail(gpu/a.cu "int x = MPI_SUCCESS;\n" "MPI_SUCCESS: MPI outside")
must_fail(src/math/a.c "#include <cuda_runtime.h>\n" "<cuda_runtime.h>: CUDA outside gpu/")
must_fail(src/comm/a.h "#include <nccl.h>\n" "<nccl.h>: CUDA outside gpu/")
must_fail(src/math/a.cu "int x;\n" "CUDA outside gpu/")

# The memory of models.
set(why "a model's memory outside state/ and engine/")
must_fail(src/train/a.c "float *x = zero_runner_element(r, 0, 1);\n" "zero_runner_element: ${why}")
must_fail(src/checkpoint/a.c "zero_runner_buffer (&e->runner, g->grad);\n"
  "zero_runner_buffer: ${why}")
must_fail(src/cli/a.c "void *x = zero_runner_use_element(r, 0, 1);\n"
  "zero_runner_use_element: ${why}")
must_fail(src/sharding/a.h "zero_status f(void) { return zero_runner_use(r, 0); }\n"
  "zero_runner_use: ${why}")
must_fail(src/train/a.c "char *x = t->engine.runner.arena.base;\n" "runner.arena: ${why}")
must_fail(src/train/a.c "char *x = t->engine.runner /* a */ -> window;\n" "runner -> window: ${why}")
must_fail(src/report/a.c "zero_window_array(&v->engine->window, 0);\n"
  "zero_window_array(&v->engine->window: ${why}")
must_fail(src/cli/a.c "char *x = e->engine.window.base;\n" "engine.window.base: ${why}")
make_tree()
file(WRITE ${WORK}/src/engine/a.c "float *x = zero_runner_element(r, 0, 1);\n")
file(WRITE ${WORK}/src/report/a.c [[
/* zero_runner_element() is for engine/. */
static const char *text = "zero_runner_buffer";
size_t bytes = v->engine->window.bytes, a = my_zero_runner_buffer, b = t->arena.base;
]])
run_check(result text)
if(NOT result EQUAL 0)
  message(SEND_ERROR "memory that may be named fails: ${text}")
endif()

# Folders.
must_fail(src/a.c "int x;\n" "belongs to no layer")
make_tree()
file(WRITE ${WORK}/src/util/a.c "int x;\n")
run_check(result text)
if(result EQUAL 0 OR NOT text MATCHES "src/util: is not one of the layers")
  message(SEND_ERROR "an unknown folder passes: ${text}")
endif()
make_tree()
file(REMOVE ${WORK}/src/sharding/sharding.h)
run_check(result text)
if(result EQUAL 0 OR NOT text MATCHES "src/sharding: holds no .c and no .h file")
  message(SEND_ERROR "an empty folder passes: ${text}")
endif()
