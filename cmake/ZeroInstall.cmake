# Installs the program, both libraries, the headers, and the files with which CMake and pkg-config
# find them. The installed tree may be moved as a whole.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(ZERO_PROGRAM)
  zero_installed(zero)
  install(TARGETS zero)
endif()
install(TARGETS zero_static zero_shared EXPORT zero
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS zero_collective LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(zero_has_cuda)
  # Beside libzero, which looks there; the program looks in the folder of libraries, too.
  zero_installed(zero_cuda)
  install(TARGETS zero_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/zero DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(ZERO_PROGRAM)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/slurm/zero.sbatch
    ${PROJECT_SOURCE_DIR}/cmake/slurm/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/zero/slurm)
endif()
# Man pages: a target of src/cli writes them to man/ of the build (zero.1, zero-train.1, zero-data.7, ...).
foreach(section 1 7)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} OPTIONAL
    FILES_MATCHING PATTERN "*.${section}")
endforeach()

# CMake: find_package(zero).
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/zero)
install(EXPORT zero FILE zeroTargets.cmake NAMESPACE zero:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/zeroConfig.cmake.in
  ${PROJECT_BINARY_DIR}/zeroConfig.cmake INSTALL_DESTINATION ${package_dir}
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/zeroConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/zeroConfig.cmake ${PROJECT_BINARY_DIR}/zeroConfigVersion.cmake
  DESTINATION ${package_dir})

# pkg-config: MPI and BLAS have no standard module name, so zero.pc holds the flags that we found.
function(zero_link_flags out)
  set(flags "")
  foreach(library IN LISTS ARGN)
    get_filename_component(dir "${library}" DIRECTORY)
    if(NOT IS_ABSOLUTE "${library}")
      if(NOT library MATCHES "^-")
        set(library -l${library})
      endif()
    elseif(library MATCHES "/lib([^/]+)\\.(so|dylib)$")
      set(library -l${CMAKE_MATCH_1})
      if(NOT dir IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
        list(PREPEND library -L${dir})
      endif()
    endif()
    list(APPEND flags ${library})
  endforeach()
  list(JOIN flags " " flags)
  set(${out} "${flags}" PARENT_SCOPE)
endfunction()

file(RELATIVE_PATH up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" up ${up}) # "../.."
file(RELATIVE_PATH libdir ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH includedir ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
zero_link_flags(mpi_libs ${MPI_C_LIBRARIES})
zero_link_flags(blas_libs ${BLAS_LINKER_FLAGS} ${BLAS_LIBRARIES} ${ZERO_OPENMP_LIBRARIES}
  ${CMAKE_DL_LIBS})
zero_link_flags(other_libs ${hwloc_LINK_LIBRARIES} ${jansson_LINK_LIBRARIES}
  ${libxxhash_LINK_LIBRARIES} ${libpcre2-8_LINK_LIBRARIES}
  ${libutf8proc_LINK_LIBRARIES})
list(TRANSFORM MPI_C_INCLUDE_DIRS PREPEND -I OUTPUT_VARIABLE mpi_flags)
list(JOIN mpi_flags " " mpi_flags)
configure_file(${PROJECT_SOURCE_DIR}/cmake/zero.pc.in ${PROJECT_BINARY_DIR}/zero.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/zero.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
