# Run by `cmake --install --component bundle`: copies the shared libraries that the
# installed tools need, and lld with those that it needs, below lib/acc, so that they run
# on any machine whose glibc and libstdc++ are no older. Those two, and what of the
# machine must be its own (MPI), stay out; licences of the rest go along.
set(PREFIX "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
set(LIBRARIES ${PREFIX}/${ACCEL_BUNDLE}/lib)
find_program(PATCHELF patchelf)
if(NOT PATCHELF)
  message(FATAL_ERROR "expected patchelf, which tells bundled libraries to look beside them, "
    "found none: install patchelf")
endif()

file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${TOOLS}
  RESOLVED_DEPENDENCIES_VAR NEEDED UNRESOLVED_DEPENDENCIES_VAR ABSENT
  # The C and C++ libraries are those of the machine: newer ones do, and two of them
  # in a process do not.
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv|stdc\\+\\+|gcc_s)\\.so")
if(ABSENT)
  message(FATAL_ERROR "expected the libraries of the tools on this machine, found no ${ABSENT}")
endif()

foreach(LIBRARY ${NEEDED})
  get_filename_component(NAME ${LIBRARY} NAME)
  if(EXISTS ${LIBRARIES}/${NAME})
    continue() # the same under another path: a link to its folder
  endif()
  file(REAL_PATH ${LIBRARY} REAL)
  # By the name that others ask for, no links: a wheel has none.
  configure_file(${REAL} ${LIBRARIES}/${NAME} COPYONLY)
  execute_process(COMMAND ${PATCHELF} --set-rpath $ORIGIN ${LIBRARIES}/${NAME}
    COMMAND_ERROR_IS_FATAL ANY)
  list(APPEND BUNDLED ${REAL})
endforeach()
set(LINKER ${TOOLS})
list(FILTER LINKER INCLUDE REGEX "/lld$")
if(LINKER) # it looks for its libraries in ../lib
  configure_file(${LINKER} ${PREFIX}/${ACCEL_BUNDLE}/bin/ld.lld COPYONLY)
endif()

# What Debian says of the licence of each.
set(LICENCES ${PREFIX}/${ACCEL_DOCDIR}/licences)
file(MAKE_DIRECTORY ${LICENCES})
foreach(FILE ${BUNDLED} ${LINKER})
  string(REGEX REPLACE "^/usr/" "/" SHORT ${FILE}) # dpkg knows it by one of two names
  execute_process(COMMAND dpkg-query -S ${FILE} /usr${SHORT} ${SHORT}
    OUTPUT_VARIABLE OWNERS ERROR_QUIET)
  string(REGEX REPLACE "[:,].*" "" PACKAGE "${OWNERS}")
  if(NOT PACKAGE OR NOT EXISTS /usr/share/doc/${PACKAGE}/copyright)
    message(FATAL_ERROR "expected the package and the copyright of ${FILE}, found none")
  endif()
  configure_file(/usr/share/doc/${PACKAGE}/copyright ${LICENCES}/${PACKAGE} COPYONLY)
endforeach()
