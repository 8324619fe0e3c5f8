# Turns src/report/machines/*.machine into strings of the program, for --machine NAME.
#
#   zero_embed_machines(out)   sets `out` to the C file, which is written again when one changes
function(zero_embed_machines out)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/machines/*.machine)
  list(SORT files)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(rows "")
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WLE)
    file(READ ${file} text)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "?" "\\?" text "${text}") # no trigraphs
    string(REPLACE "\n" "\\n\"\n     \"" text "${text}")
    string(APPEND rows "    {\"${name}\",\n     \"${text}\"},\n")
  endforeach()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/machine_texts.c)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
    "#include \"report/machine_texts.h\"\n\n#include <stddef.h>\n
const zero_machine_text zero_machine_texts[] = {\n@rows@    {NULL, NULL},\n};\n")
  set(${out} ${source} PARENT_SCOPE)
endfunction()
