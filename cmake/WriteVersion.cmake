# Writes Version.cpp, where the tools have their version and commit from. Run as a
# script: cmake -DSOURCE_DIR=… -DACC_VERSION=0.1.0 -DOUTPUT=…/Version.cpp -P this.
# The file is written anew only where it changes: one object, and a link of each tool.
set(ACC_COMMIT unknown)
if(EXISTS ${SOURCE_DIR}/.git) # else a repository around the sources would answer
  execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse --short=10 HEAD
    OUTPUT_VARIABLE FOUND OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
else()
  # `git archive` has put the commit in here.
  file(STRINGS ${SOURCE_DIR}/cmake/Commit.txt FOUND LIMIT_COUNT 1)
endif()
if(FOUND MATCHES "^([0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f])")
  set(ACC_COMMIT ${CMAKE_MATCH_1})
endif()
configure_file(${SOURCE_DIR}/cmake/Version.cpp.in ${OUTPUT} @ONLY)
