# Turns text files into strings of the program: machines, forms, lessons, help topics.
#
#   zero_embed_texts(out zero_machine_texts machines/*.machine)
#
# sets `out` to a C file with the table zero_machine_texts (base/embedded.h), one row a file, sorted by
# name. The file is written again when one of them changes.
function(zero_embed_texts out table)
  file(GLOB files CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${ARGN})
  list(SORT files)
  set(rows "")
  foreach(file IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    get_filename_component(name ${file} NAME_WLE)
    file(READ ${file} text)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "?" "\\?" text "${text}") # no trigraphs
    string(REPLACE "\n" "\\n\"\n     \"" text "${text}")
    string(APPEND rows "    {\"${name}\",\n     \"${text}\"},\n")
  endforeach()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${table}.c)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
    "#include \"base/embedded.h\"\n\n#include <stddef.h>\n
extern const zero_embedded ${table}[];
const zero_embedded ${table}[] = {\n@rows@    {NULL, NULL},\n};\n")
  # The standard promises 4095 characters of a string; the compilers that we know have no limit.
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings)
  set(${out} ${source} PARENT_SCOPE)
endfunction()
