# Turns src/cli/deepspeed.keys, "path | rule | reason" on each line, into rows of the program.
#
#   zero_embed_keys(out)   sets `out` to the C file, which is written again when the keys change
function(zero_embed_keys out)
  set(keys ${CMAKE_CURRENT_SOURCE_DIR}/deepspeed.keys)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${keys})
  file(READ ${keys} text)
  string(REGEX REPLACE "(^|\n)#[^\n]*" "\n" text "${text}")
  string(REGEX REPLACE "([\\\\\"?])" "\\\\\\1" text "${text}") # ?: no trigraphs
  string(REGEX REPLACE "([^\n|]+) \\| ([^\n|]+) \\| ?([^\n]*)" "    {\"\\1\", \"\\2\", \"\\3\"}," rows
    "${text}")
  string(REGEX REPLACE "\n\n+" "\n" rows "${rows}")
  set(source ${CMAKE_CURRENT_BINARY_DIR}/deepspeed_keys.c)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
    "#include \"cli/deepspeed.h\"\n
const zero_deepspeed_key zero_deepspeed_keys[] = {@rows@    {NULL, NULL, NULL},\n};\n")
  set(${out} ${source} PARENT_SCOPE)
endfunction()
