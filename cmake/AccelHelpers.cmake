# The functions every folder's CMakeLists.txt is written with. A library takes
# all .cpp files of its folder (and of the folders named in SUBDIRS), so that
# adding an op or a pass is adding a file.

# accel_add_precompiled_header(AccelXPch cmake/XPch.h): for everything that
# includes MLIR (a pass compiles in 0.8-2.4 s with it, in 6.7 s without).
function(accel_add_precompiled_header NAME HEADER)
  add_library(${NAME} STATIC ${CMAKE_SOURCE_DIR}/cmake/Pch.cpp)
  target_precompile_headers(${NAME} PRIVATE ${CMAKE_SOURCE_DIR}/${HEADER})
  target_compile_options(${NAME} PRIVATE -Xclang -fno-pch-timestamp)
  add_dependencies(${NAME} AccelTableGen)
endfunction()

# Compiles TARGET with ACCEL_PCH, the precompiled header that the room has.
function(accel_use_precompiled_header TARGET)
  target_precompile_headers(${TARGET} REUSE_FROM ${ACCEL_PCH})
  target_compile_options(${TARGET} PRIVATE -Xclang -fno-pch-timestamp)
endfunction()

# accel_compile_together(TARGET): several files of a folder are compiled as one, which halves a
# build from clean: most of a file's time is the templates of MLIR, which all of them use.
# Files that say `using namespace llvm`, or `mlir`, stay apart from those that do not. What is
# local to a file needs a name that no other file of its folder has: scripts/check-local-names.
option(ACCEL_COMPILE_TOGETHER "Compile eight files of a folder as one" ON)
function(accel_compile_together TARGET)
  if(NOT ACCEL_COMPILE_TOGETHER)
    return()
  endif()
  get_target_property(SOURCES ${TARGET} SOURCES)
  foreach(SOURCE ${SOURCES})
    get_filename_component(SOURCE ${SOURCE} ABSOLUTE)
    cmake_path(IS_PREFIX CMAKE_BINARY_DIR ${SOURCE} IS_MADE)
    if(IS_MADE OR NOT SOURCE MATCHES "\\.cpp$")
      continue() # pieces of one file, made for compilers side by side
    endif()
    cmake_path(GET SOURCE PARENT_PATH FOLDER)
    cmake_path(GET FOLDER FILENAME GROUP)
    foreach(SPACE llvm mlir)
      file(STRINGS ${SOURCE} FOUND REGEX "^using namespace ${SPACE};" LIMIT_COUNT 1)
      if(FOUND)
        string(APPEND GROUP "_${SPACE}")
      endif()
    endforeach()
    list(APPEND OF_${GROUP} ${SOURCE})
    list(LENGTH OF_${GROUP} COUNT)
    math(EXPR BATCH "(${COUNT} - 1) / 8")
    set_source_files_properties(${SOURCE} PROPERTIES UNITY_GROUP ${GROUP}_${BATCH})
  endforeach()
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

function(accel_collect_sources OUT)
  file(GLOB FOUND CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  foreach(DIR ${ARGN})
    file(GLOB MORE CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${DIR}/*.cpp)
    list(APPEND FOUND ${MORE})
  endforeach()
  set(${OUT} ${FOUND} PARENT_SCOPE)
endfunction()

# accel_add_library(AccelX [SUBDIRS dir...] [LINK lib...] [DEPENDS target...])
function(accel_add_library NAME)
  cmake_parse_arguments(ARG "" "" "SUBDIRS;LINK;DEPENDS;SOURCES" ${ARGN})
  accel_collect_sources(FOUND ${ARG_SUBDIRS})
  add_library(${NAME} STATIC ${FOUND} ${ARG_SOURCES})
  set_property(GLOBAL APPEND PROPERTY ACCEL_LIBRARIES ${NAME}) # for test/Unit
  add_dependencies(${NAME} AccelTableGen ${ARG_DEPENDS})
  target_link_libraries(${NAME} PUBLIC ${ARG_LINK} MLIR LLVM)
  accel_use_precompiled_header(${NAME})
  accel_compile_together(${NAME})
endfunction()

# All tablegen outputs of the project hang on this target.
add_custom_target(AccelTableGen)

# accel_tablegen(td [out flag...]...): outputs beside the sources' place in the
# build tree.
function(accel_tablegen TD)
  set(LLVM_TARGET_DEFINITIONS ${TD})
  set(ARGS ${ARGN})
  while(ARGS)
    list(POP_FRONT ARGS OUT FLAGS)
    separate_arguments(FLAGS)
    mlir_tablegen(${OUT} ${FLAGS})
  endwhile()
  get_filename_component(STEM ${TD} NAME_WE)
  file(RELATIVE_PATH REL ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  string(REPLACE "/" "_" REL ${REL})
  set(TARGET Accel_${REL}_${STEM}_gen)
  add_custom_target(${TARGET} DEPENDS ${TABLEGEN_OUTPUT})
  add_dependencies(AccelTableGen ${TARGET})
  set(TABLEGEN_OUTPUT "" PARENT_SCOPE)
endfunction()

# accel_add_dialect(NN nn): NNOps.td, NNDialect, attributes, types and enums of
# it, and the library Accel<NAME>Dialect. The op classes are compiled in SHARDS
# pieces (one 100-op file takes 38 s, a quarter of it 9.5 s); the list of them,
# which only the undivided file has, is NNOpList.inc.
function(accel_add_dialect NAME NAMESPACE)
  cmake_parse_arguments(ARG "ATTRS;ENUMS" "SHARDS" "LINK" ${ARGN})
  set(OUTPUTS
    ${NAME}Ops.h.inc "-gen-op-decls -op-shard-count=${ARG_SHARDS}"
    ${NAME}Ops.cpp.inc "-gen-op-defs -op-shard-count=${ARG_SHARDS}"
    ${NAME}OpList.inc "-gen-op-defs"
    ${NAME}Dialect.h.inc "-gen-dialect-decls -dialect=${NAMESPACE}"
    ${NAME}Dialect.cpp.inc "-gen-dialect-defs -dialect=${NAMESPACE}")
  if(ARG_ATTRS)
    list(APPEND OUTPUTS
      ${NAME}Attrs.h.inc "-gen-attrdef-decls -attrdefs-dialect=${NAMESPACE}"
      ${NAME}Attrs.cpp.inc "-gen-attrdef-defs -attrdefs-dialect=${NAMESPACE}")
  endif()
  if(ARG_ENUMS)
    list(APPEND OUTPUTS ${NAME}Enums.h.inc "-gen-enum-decls"
      ${NAME}Enums.cpp.inc "-gen-enum-defs")
  endif()
  accel_tablegen(${NAME}Ops.td ${OUTPUTS})
  set(SHARD_SOURCES)
  math(EXPR LAST "${ARG_SHARDS} - 1")
  foreach(INDEX RANGE ${LAST})
    set(FILE ${CMAKE_CURRENT_BINARY_DIR}/${NAME}OpsShard${INDEX}.cpp)
    file(CONFIGURE OUTPUT ${FILE} CONTENT
"#include \"dialects/${NAME}/${NAME}.h\"
using namespace mlir;
#define GET_OP_DEFS_${INDEX}
#include \"dialects/${NAME}/${NAME}Ops.cpp.inc\"
")
    list(APPEND SHARD_SOURCES ${FILE})
  endforeach()
  accel_add_library(Accel${NAME}Dialect SOURCES ${SHARD_SOURCES}
    LINK AccelInterfaces ${ARG_LINK})
endfunction()

# accel_add_passes(Lib): lib/Lib/Passes.td becomes Passes.h.inc.
function(accel_add_passes NAME)
  accel_tablegen(Passes.td Passes.h.inc "-gen-pass-decls -name=${NAME}")
endfunction()

# accel_add_interface(Evaluate): dialects/Interfaces/Evaluate.td becomes
# Evaluate.h.inc and Evaluate.cpp.inc.
function(accel_add_interface NAME)
  accel_tablegen(${NAME}.td ${NAME}.h.inc "-gen-op-interface-decls"
    ${NAME}.cpp.inc "-gen-op-interface-defs")
endfunction()
