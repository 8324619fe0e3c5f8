# Turns src/pages/page.css into strings of the program, a line each.
#
#   zero_embed_style(out)   sets `out` to the C file, which is written again when the style changes
function(zero_embed_style out)
  set(style ${CMAKE_CURRENT_SOURCE_DIR}/page.css)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${style})
  file(READ ${style} text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "?" "\\?" text "${text}") # no trigraphs
  string(REPLACE "\n" "\",\n    \"" lines "${text}")
  set(source ${CMAKE_CURRENT_BINARY_DIR}/page_style.c)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
    "#include \"pages/page_style.h\"\n\n#include <stddef.h>\n
const char *const zero_page_style[] = {\n    \"@lines@\",\n    NULL,\n};\n")
  set(${out} ${source} PARENT_SCOPE)
endfunction()
