# Read by cpack before each generator: which components go into what it makes.
set(CPACK_COMPONENTS_ALL tools ${CPACK_ACCEL_MPI} development)
if(CPACK_GENERATOR STREQUAL DEB)
  set(CPACK_DEB_COMPONENT_INSTALL ON) # a package each
else()
  list(APPEND CPACK_COMPONENTS_ALL bundle)
  set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
  set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
endif()
