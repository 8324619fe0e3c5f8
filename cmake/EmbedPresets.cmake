# Turns src/nn/presets.txt, "name | source | architecture | numbers" on each line, into rows of the program.
#
#   zero_embed_presets(out)   sets `out` to the C file, which is written again when the models change
function(zero_embed_presets out)
  set(presets ${CMAKE_CURRENT_SOURCE_DIR}/presets.txt)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${presets})
  file(STRINGS ${presets} lines REGEX "^[^#]")
  set(rows "")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^([^|]+) \\| ([^|]+) \\| ([a-z0-9]+) \\| ([^|]+)$")
      message(FATAL_ERROR "${presets}: expected 'name | source | architecture | numbers', found '${line}'")
    endif()
    set(row "\"${CMAKE_MATCH_1}\", \"${CMAKE_MATCH_2}\"")
    string(TOUPPER ${CMAKE_MATCH_3} kind)
    string(REGEX REPLACE "([a-z_.]+) ([^,]+)" ".\\1 = \\2" numbers "${CMAKE_MATCH_4}")
    string(APPEND rows "    {${row}, {.kind = ZERO_PRESET_KIND(ZERO_${kind}), ${numbers}}},\n")
  endforeach()
  list(LENGTH lines n)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/presets_rows.c)
  # A GPT-2's shape names no architecture.
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
    "#include \"nn/architecture.h\"\n
#define ZERO_PRESET_KIND(kind_of) ((kind_of) == ZERO_GPT2 ? NULL : &zero_architectures[kind_of])\n
const zero_preset zero_presets[] = {\n@rows@    {.name = NULL},\n};\n")
  set(${out} ${source} PARENT_SCOPE)
endfunction()
