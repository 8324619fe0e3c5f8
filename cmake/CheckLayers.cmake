# cmake -DROOT=<project> -P CheckLayers.cmake: no layer includes or links a higher one.
#
#   src/<layer>    includes its own folder, lower floors and zero/, and links lower floors only;
#                  layers of one floor are siblings, which do not include or link each other
#   include/zero   includes zero/ only: users do not have our internal headers
#   gpu            includes its own folder, base/, math/ and zero/; only gpu/ uses CUDA
#
# Only comm/, cli/ and zero/comm.h name MPI. Only state/ and engine/ name the memory of a model: others read
# and write states by visits (state/visit.h). Paths start at src/, include/ or
# the project, so every include shows the floor of its file. Comments are ignored.
cmake_minimum_required(VERSION 3.20)

include(${CMAKE_CURRENT_LIST_DIR}/ZeroLayers.cmake)
set(mpi_layers comm cli)
set(cuda_header
  "^(cuda|cu[a-z]+_v2|cublas|cudnn|curand|cusparse|cusolver|cufft|nccl|nvml|nvToolsExt)")

string(REPLACE "," ";" layers "${zero_floors}")
set(bad "")
macro(complain file text)
  file(RELATIVE_PATH complain_path ${ROOT} ${file})
  string(APPEND bad "\n  ${complain_path}: ${text}")
endmacro()

# Strings, character constants and comments are matched as a whole, so a quote in a comment or a
# /* in a string has no effect.
set(string_text "\"([^\"\\\n]|\\\\.)*\"|'([^'\\\n]|\\\\.)*'")
set(comment_text "/\\*[^*]*\\*+([^/*][^*]*\\*+)*/|//[^\n]*")

function(read_code file out_code)
  file(READ ${file} code)
  string(REPLACE ";" " " code "${code}") # a list would break here
  string(REGEX REPLACE "[][]" " " code "${code}")
  string(REPLACE "\\\n" " " code "${code}")
  # Each piece of code is matched together with the comments after it, and only the code is kept.
  string(REGEX REPLACE "([^/\"']+|/[^/*\"']|${string_text})(${comment_text})*" "\\1"
    code "\n${code}")
  set(${out_code} "${code}" PARENT_SCOPE)
endfunction()

function(check_include file own_folders directive)
  if(NOT directive MATCHES "include[ \t]*([\"<])([^\">]+)[\">]")
    complain(${file} "'${directive}': an include names its file")
  else()
    set(bracket "${CMAKE_MATCH_1}")
    set(path "${CMAKE_MATCH_2}")
    string(REGEX REPLACE "/.*" "" folder "${path}")
    set(ours FALSE)
    string(REGEX REPLACE "\\.(rows|command)$" ".txt" source "${path}") # made from it by the build
    foreach(place src include .)
      if(EXISTS ${ROOT}/${place}/${source})
        set(ours TRUE)
      endif()
    endforeach()
    if(bracket STREQUAL "<")
      if(ours)
        complain(${file} "<${path}>: our own headers take quotes")
      elseif(path MATCHES "${cuda_header}" AND NOT "gpu" IN_LIST own_folders)
        complain(${file} "<${path}>: CUDA outside gpu/")
      endif()
    elseif(path MATCHES "\\.\\." OR NOT path MATCHES "/")
      complain(${file} "\"${path}\": an include starts with its folder, as in \"base/rng.h\"")
    elseif(NOT folder IN_LIST own_folders)
      complain(${file} "\"${path}\": ${folder}/ is not its own folder, a lower one or zero/")
    elseif(NOT ours)
      complain(${file} "\"${path}\": there is no such header")
    endif()
  endif()
  set(bad "${bad}" PARENT_SCOPE)
endfunction()

# Functions, types and constants of MPI are all forbidden.
function(check_no_mpi file code)
  string(REGEX REPLACE "${string_text}" "" code "${code}")
  string(REGEX MATCHALL "[A-Za-z0-9_]+" names "${code}")
  list(FILTER names INCLUDE REGEX "^P?MPIX?_")
  list(REMOVE_DUPLICATES names)
  if(names)
    list(JOIN names ", " names)
    complain(${file} "${names}: MPI outside comm/ and cli/")
  endif()
  set(bad "${bad}" PARENT_SCOPE)
endfunction()

# The addresses of buffers, and the memory that they lie in: "r->arena", "e.runner.window",
# "zero_window_array(&engine->window". The size of a window is no address. Others reach states by
# visits (state/visit.h).
set(model_memory
  "zero_runner_(buffer|element|use|use_element)"
  "runner *(\\.|->) *(arena|window)"
  "zero_window_array *\\([^,)]*(engine|runner)[^,)]*"
  "(engine|runner) *(\\.|->) *window *\\. *base")
function(check_no_model_memory file code)
  string(REGEX REPLACE "${string_text}" "" code "${code}")
  foreach(pattern IN LISTS model_memory)
    if(code MATCHES "(^|[^A-Za-z0-9_])(${pattern})($|[^A-Za-z0-9_])")
      string(STRIP "${CMAKE_MATCH_2}" found)
      complain(${file} "${found}: a model's memory outside state/ and engine/")
    endif()
  endforeach()
  set(bad "${bad}" PARENT_SCOPE)
endfunction()

function(check_file file own_folders may_name_mpi)
  read_code(${file} code)
  string(REGEX MATCHALL "(^|\n)[ \t]*#[ \t]*include[^\n]*" directives "${code}")
  foreach(directive IN LISTS directives)
    string(STRIP "${directive}" directive)
    check_include(${file} "${own_folders}" "${directive}")
    if(NOT may_name_mpi AND directive MATCHES "[<\"]mpi\\.h")
      complain(${file} "<mpi.h>: MPI outside comm/ and cli/")
    endif()
  endforeach()
  if(NOT may_name_mpi)
    check_no_mpi(${file} "${code}")
  endif()
  set(bad "${bad}" PARENT_SCOPE)
endfunction()

file(GLOB folders LIST_DIRECTORIES true ${ROOT}/src/*)
foreach(folder IN LISTS folders)
  get_filename_component(name ${folder} NAME)
  if(IS_DIRECTORY ${folder} AND NOT name IN_LIST layers AND NOT name STREQUAL "python") # no C
    complain(${folder} "is not one of the layers ${layers}")
  elseif(name MATCHES "\\.[ch]$")
    complain(${folder} "belongs to no layer")
  endif()
endforeach()

# A library whose declarations are copied can be linked without an include. Our libraries are named
# zero_<layer>.
function(check_links file lower)
  file(READ ${file} text)
  string(REGEX REPLACE "#[^\n]*" "" text "${text}")
  string(REGEX MATCHALL "LINKS[^)]*" lists "${text}")
  string(REGEX MATCHALL "zero_[a-z_]+" names "${lists}")
  foreach(name IN LISTS names)
    string(REGEX REPLACE "^zero_" "" linked "${name}")
    if(linked IN_LIST layers AND NOT linked IN_LIST lower)
      complain(${file} "links ${name}: ${linked}/ is not a lower floor")
    endif()
  endforeach()
  set(bad "${bad}" PARENT_SCOPE)
endfunction()

set(lower zero)
foreach(floor IN LISTS zero_floors)
  string(REPLACE "," ";" siblings "${floor}")
  foreach(layer IN LISTS siblings)
    file(GLOB_RECURSE files ${ROOT}/src/${layer}/*.[ch])
    if(NOT files)
      complain(${ROOT}/src/${layer} "holds no .c and no .h file")
    endif()
    list(FIND mpi_layers ${layer} may_name_mpi)
    math(EXPR may_name_mpi "${may_name_mpi} + 1")
    foreach(file IN LISTS files)
      check_file(${file} "${lower};${layer}" ${may_name_mpi})
      if(NOT layer MATCHES "^(state|engine)$")
        read_code(${file} code)
        check_no_model_memory(${file} "${code}")
      endif()
    endforeach()
    if(EXISTS ${ROOT}/src/${layer}/CMakeLists.txt)
      check_links(${ROOT}/src/${layer}/CMakeLists.txt "${lower}")
    endif()
  endforeach()
  list(APPEND lower ${siblings})
endforeach()
file(GLOB_RECURSE files ${ROOT}/src/*.cu ${ROOT}/src/*.cuh)
foreach(file IN LISTS files)
  complain(${file} "CUDA outside gpu/")
endforeach()

file(GLOB_RECURSE files ${ROOT}/include/*.h)
foreach(file IN LISTS files)
  set(may_name_mpi 0)
  if(file STREQUAL "${ROOT}/include/zero/comm.h") # where programs hand over their communicator
    set(may_name_mpi 1)
  endif()
  check_file(${file} "zero" ${may_name_mpi})
endforeach()

file(GLOB_RECURSE files ${ROOT}/gpu/*.[ch] ${ROOT}/gpu/*.cu ${ROOT}/gpu/*.cuh ${ROOT}/gpu/*.cc)
foreach(file IN LISTS files)
  check_file(${file} "gpu;base;math;zero" 0)
endforeach()

if(bad)
  message(FATAL_ERROR "these break the layers:${bad}")
endif()
