# Turns a text file into an array of strings of the program, a line each; NULL ends it.
#
#   zero_embed_lines(out FILE NAME HEADER)   sets `out` to the C file that defines NAME, which HEADER
#                                            declares; it is written again when FILE changes
function(zero_embed_lines out file name header)
  set(path ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "?" "\\?" text "${text}") # no trigraphs
  string(REPLACE "\n" "\",\n    \"" lines "${text}")
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.c)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
    "#include \"${header}\"\n\n#include <stddef.h>\n
const char *const ${name}[] = {\n    \"@lines@\",\n    NULL,\n};\n")
  set(${out} ${source} PARENT_SCOPE)
endfunction()
