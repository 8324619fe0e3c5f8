# cmake -DROOT=<project> -P CheckLayers.cmake: the house keeps its floors apart.
#
#   src/<layer>    includes its own folder, lower layers and zero/
#   include/zero   includes zero/; users need none of our inner headers
#   gpu            includes its own folder, base/, math/ and zero/; alone sees CUDA
#
# MPI is named in comm/, cli/ and zero/comm.h only. Paths start at src/, include/ or the project, so every
# include says which floor it takes from. Comments are not read.
cmake_minimum_required(VERSION 3.20)

set(layers base math comm nn sharding train cli) # lowest first
set(mpi_layers comm cli)
set(cuda_header "^(cuda|cu[a-z]+_v2|cublas|cudnn|curand|cusparse|cusolver|cufft|nccl|nvml|nvToolsExt)")

set(bad "")
macro(complain file text)
  file(RELATIVE_PATH complain_path ${ROOT} ${file})
  string(APPEND bad "\n  ${complain_path}: ${text}")
endmacro()

# Strings and character constants are read whole, and so are comments: a quote in a comment
# or a /* in a string opens nothing.
set(string_text "\"([^\"\\\n]|\\\\.)*\"|'([^'\\\n]|\\\\.)*'")
set(comment_text "/\\*[^*]*\\*+([^/*][^*]*\\*+)*/|//[^\n]*")

function(read_code file out_code)
  file(READ ${file} code)
  string(REPLACE ";" " " code "${code}") # a list would break here
  string(REGEX REPLACE "[][]" " " code "${code}")
  string(REPLACE "\\\n" " " code "${code}")
  # Every piece of code takes the comments behind it along; only the piece stays.
  string(REGEX REPLACE "([^/\"']+|/[^/*\"']|${string_text})(${comment_text})*" "\\1" code "\n${code}")
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
    foreach(place src include .)
      if(EXISTS ${ROOT}/${place}/${path})
        set(ours TRUE)
      endif()
    endforeach()
    if(bracket STREQUAL "<")
      if(ours)
        complain(${file} "<${path}>: our own headers stand in quotes")
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

# A name, whatever it stands for: functions, types and constants alike.
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
  if(IS_DIRECTORY ${folder} AND NOT name IN_LIST layers)
    complain(${folder} "is not one of the layers ${layers}")
  elseif(name MATCHES "\\.[ch]$")
    complain(${folder} "belongs to no layer")
  endif()
endforeach()

set(own_folders zero)
foreach(layer IN LISTS layers)
  list(APPEND own_folders ${layer})
  file(GLOB_RECURSE files ${ROOT}/src/${layer}/*.[ch])
  if(NOT files)
    complain(${ROOT}/src/${layer} "holds no .c and no .h file")
  endif()
  list(FIND mpi_layers ${layer} may_name_mpi)
  math(EXPR may_name_mpi "${may_name_mpi} + 1")
  foreach(file IN LISTS files)
    check_file(${file} "${own_folders}" ${may_name_mpi})
  endforeach()
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

file(GLOB_RECURSE files ${ROOT}/gpu/*.[ch] ${ROOT}/gpu/*.cu ${ROOT}/gpu/*.cuh)
foreach(file IN LISTS files)
  check_file(${file} "gpu;base;math;zero" 0)
endforeach()

if(bad)
  message(FATAL_ERROR "layers are crossed:${bad}")
endif()
