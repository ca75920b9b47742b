# The library AccelVersion, which the tools alone are linked with: a commit costs one
# object and their links. Git's log of HEAD changes with every commit and checkout.
set(VERSION_FILE ${CMAKE_BINARY_DIR}/version/Version.cpp)
execute_process(COMMAND git -C ${CMAKE_SOURCE_DIR} rev-parse --git-path logs/HEAD
  OUTPUT_VARIABLE HEAD_LOG OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
get_filename_component(HEAD_LOG "${HEAD_LOG}" ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
if(NOT EXISTS ${CMAKE_SOURCE_DIR}/.git OR NOT EXISTS ${HEAD_LOG} OR IS_DIRECTORY ${HEAD_LOG})
  set(HEAD_LOG)
endif()
add_custom_command(OUTPUT ${VERSION_FILE}
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${CMAKE_SOURCE_DIR} -DACC_VERSION=${PROJECT_VERSION}
    -DOUTPUT=${VERSION_FILE} -P ${CMAKE_SOURCE_DIR}/cmake/WriteVersion.cmake
  DEPENDS ${CMAKE_SOURCE_DIR}/cmake/WriteVersion.cmake ${CMAKE_SOURCE_DIR}/cmake/Version.cpp.in
    ${CMAKE_SOURCE_DIR}/cmake/Commit.txt ${HEAD_LOG}
  COMMENT "Writing version/Version.cpp" VERBATIM)
add_library(AccelVersion STATIC ${VERSION_FILE})
target_include_directories(AccelVersion PUBLIC
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/runtime/include> $<INSTALL_INTERFACE:include>)
install(TARGETS AccelVersion EXPORT accTargets ARCHIVE COMPONENT development)
