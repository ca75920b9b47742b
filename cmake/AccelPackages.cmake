# What `cpack` makes in the build folder, of what is built: a .tar.gz with all that the
# tools need but the C and C++ libraries, and packages for Debian 12, which name what
# they need of Debian's. docs/Installing.md says how each is used.
set(CPACK_GENERATOR TGZ DEB)
set(NAME acc-compiler) # `acc` is somebody else's on PyPI
set(OTHER acc-runtime)
if(ACCEL_RUNTIME_ONLY)
  set(NAME acc-runtime)
  set(OTHER acc-compiler)
endif()
set(CPACK_PACKAGE_NAME ${NAME})
set(CPACK_PACKAGE_VENDOR acc)
set(CPACK_PACKAGE_CONTACT "acc <acc@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Compiles training steps of ONNX models into sharded executables")
set(CPACK_PACKAGE_FILE_NAME ${NAME}-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/cmake/PackageComponents.cmake)

# Of a .deb: dpkg-shlibdeps finds the libraries; lld is started, not linked with.
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME ${NAME})
set(CPACK_DEBIAN_TOOLS_PACKAGE_CONFLICTS ${OTHER}) # both have acc-run
if(NOT ACCEL_RUNTIME_ONLY)
  set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS lld-22)
endif()
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS ${NAME}-mpi)
if(TARGET accel-mpi)
  set(CPACK_ACCEL_MPI mpi) # for PackageComponents.cmake
endif()
set(CPACK_DEBIAN_MPI_PACKAGE_NAME ${NAME}-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "${NAME} (= ${PROJECT_VERSION}), openmpi-bin")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME ${NAME}-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_CONFLICTS ${OTHER}-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libdnnl-dev, nettle-dev, liburing-dev")
include(CPack)
