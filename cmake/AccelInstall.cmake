# What `cmake --install` puts where, and CPack into packages. Components: tools (what
# people start), mpi (the plug-in of that), development (the runtime's libraries, headers
# and find_package(acc)), and, only where it is asked for, bundle: the shared libraries
# and the linker that the tools need and a machine without LLVM lacks.
include(CMakePackageConfigHelpers)

# Tools find the bundle beside them; without it LLVM's libraries are where they were at
# the build. Debian's LLVM looks in $ORIGIN/../lib, hence the two levels.
# The tools look for it there (Library.cpp, MpiNetwork.cpp).
set(ACCEL_BUNDLE lib/acc)
file(RELATIVE_PATH FROM_BIN /${CMAKE_INSTALL_BINDIR} /${ACCEL_BUNDLE}/lib)
set(CMAKE_INSTALL_RPATH "$ORIGIN/${FROM_BIN}")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

set(CONFIG_FOLDER ${CMAKE_INSTALL_LIBDIR}/cmake/acc)
configure_package_config_file(cmake/accConfig.cmake.in ${CMAKE_BINARY_DIR}/accConfig.cmake
  INSTALL_DESTINATION ${CONFIG_FOLDER})
# Before 1.0.0 a minor version may break what the one before had (semver.org).
write_basic_package_version_file(${CMAKE_BINARY_DIR}/accConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/accConfig.cmake ${CMAKE_BINARY_DIR}/accConfigVersion.cmake
  DESTINATION ${CONFIG_FOLDER} COMPONENT development)
install(EXPORT accTargets NAMESPACE acc:: DESTINATION ${CONFIG_FOLDER} COMPONENT development)
install(DIRECTORY runtime/include/accel-rt TYPE INCLUDE COMPONENT development
  FILES_MATCHING PATTERN "*.h")
install(FILES README.md CHANGELOG.md TYPE DOC COMPONENT tools)

set(BUNDLED $<TARGET_FILE:acc-run>)
if(NOT ACCEL_RUNTIME_ONLY) # of two that need the same libraries one stands for both
  list(APPEND BUNDLED $<TARGET_FILE:acc-opt> /usr/lib/llvm-22/bin/lld)
endif()
install(CODE "set(TOOLS ${BUNDLED})
set(ACCEL_BUNDLE ${ACCEL_BUNDLE})
set(ACCEL_DOCDIR ${CMAKE_INSTALL_DOCDIR})" COMPONENT bundle EXCLUDE_FROM_ALL)
install(SCRIPT cmake/BundleLibraries.cmake COMPONENT bundle EXCLUDE_FROM_ALL)
