# cmake -D SOURCE=DIR -D FILE=FILE -P WriteCommit.cmake: writes a C file that knows the commit of
# the sources, with -dirty if they were changed since, or "unknown" if DIR is not the top of a git
# repository. The file is touched only if its text changes.
find_program(GIT git)
set(commit unknown)
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --show-toplevel
    OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  get_filename_component(source "${SOURCE}" REALPATH)
  if(NOT failed AND top STREQUAL source) # not the commit of a project around this one
    execute_process(
      COMMAND ${GIT} --no-optional-locks -C ${SOURCE}
        describe --always --dirty --abbrev=12 --exclude=*
      OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed AND found)
      set(commit ${found})
    endif()
  endif()
endif()
string(CONCAT text
  "#include \"cli/build.h\"\n\n"
  "const char *zero_build_commit(void)\n{\n    return \"${commit}\";\n}\n")
set(before "")
if(EXISTS ${FILE})
  file(READ ${FILE} before)
endif()
if(NOT text STREQUAL before)
  file(WRITE ${FILE} "${text}")
endif()
