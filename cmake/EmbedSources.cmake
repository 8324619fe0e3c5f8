# Turns this project's sources into one C string, for --data self.
#
#   zero_embed_sources(out)   sets `out` to the C file that the build writes
#
# The file is written again when a source is changed, added or removed. It is a string literal
# because every compiler accepts that, unlike .incbin. The second part of this file is the script
# that the build runs.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  function(zero_embed_sources out)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS
      ${PROJECT_SOURCE_DIR}/src/*.[ch] ${PROJECT_SOURCE_DIR}/src/*.md
      ${PROJECT_SOURCE_DIR}/include/*.h ${PROJECT_SOURCE_DIR}/cmake/*.cmake
      ${PROJECT_SOURCE_DIR}/cmake/*.md)
    set(list ${CMAKE_CURRENT_BINARY_DIR}/self_sources.txt)
    set(text ${CMAKE_CURRENT_BINARY_DIR}/self_text.c)
    list(SORT sources)
    list(JOIN sources "\n" lines)
    file(GENERATE OUTPUT ${list} CONTENT "${lines}\n")
    add_custom_command(OUTPUT ${text}
      COMMAND ${CMAKE_COMMAND} -DLIST=${list} -DOUT=${text}
        -P ${PROJECT_SOURCE_DIR}/cmake/EmbedSources.cmake
      DEPENDS ${sources} ${list} VERBATIM COMMENT "Embedding the sources")
    set_source_files_properties(${text} PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings)
    set(${out} ${text} PARENT_SCOPE)
  endfunction()
  return()
endif()

file(STRINGS ${LIST} sources)
file(WRITE ${OUT} "#include \"data/self_text.h\"\n\nconst char zero_self_text[] =\n")
foreach(source IN LISTS sources)
  file(READ ${source} text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "?" "\\?" text "${text}") # no trigraphs
  string(REPLACE "\n" "\\n\"\n\"" text "${text}")
  file(APPEND ${OUT} "\"${text}\"\n")
endforeach()
file(APPEND ${OUT} ";\nconst size_t zero_self_len = sizeof zero_self_text - 1;\n")
