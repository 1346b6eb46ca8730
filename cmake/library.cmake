# The standard headers that nearly every file includes, compiled once for all folders. They change the time of a build and
# nothing else: files include what they use, which the builds without this check (the default, and clang's).
set(TILEWRIGHT_PRECOMPILED_HEADERS
  <algorithm> <array> <cstdint> <functional> <map> <memory> <optional> <set> <span> <string> <string_view> <utility>
  <variant> <vector> <fmt/core.h> <fmt/format.h>)
if(TILEWRIGHT_PRECOMPILE)
  file(WRITE ${CMAKE_BINARY_DIR}/precompiled.cpp "// What the precompiled headers are compiled with.\n")
  add_library(tilewright_precompiled OBJECT ${CMAKE_BINARY_DIR}/precompiled.cpp)
  target_link_libraries(tilewright_precompiled PRIVATE tilewright_options tilewright_fmt)
  target_precompile_headers(tilewright_precompiled PRIVATE ${TILEWRIGHT_PRECOMPILED_HEADERS})
endif()

# tilewright_library(NAME SOURCES … DEPENDS …): a folder's library. A folder without sources gives an interface
# library, so that a headers-only folder (or one that is being emptied) still configures.
function(tilewright_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_link_libraries(${name} PUBLIC tilewright_options ${ARG_DEPENDS})
    if(TILEWRIGHT_PRECOMPILE)
      target_precompile_headers(${name} REUSE_FROM tilewright_precompiled)
    endif()
    if(TILEWRIGHT_UNITY)
      set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
    endif()
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE tilewright_options ${ARG_DEPENDS})
  endif()
endfunction()

# tilewright_private(NAME LIBRARY …): what a folder's sources need and its users do not see.
function(tilewright_private name)
  get_target_property(type ${name} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    target_link_libraries(${name} INTERFACE ${ARGN})
  else()
    target_link_libraries(${name} PRIVATE ${ARGN})
  endif()
endfunction()

# tilewright_texts(VARIABLE FUNCTION PART HEADER FILE …): adds to the list VARIABLE a source that defines FUNCTION, declared in HEADER, over the
# texts of the files (cmake/texts.cmake).
function(tilewright_texts variable function part header)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/texts.cmake)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${ARGN}" -DPART=${part} -DHEADER=${header} -DFUNCTION=${function} -DOUTPUT=${output} -P ${script}
    DEPENDS ${ARGN} ${script} VERBATIM)
  set(${variable} ${${variable}} ${output} PARENT_SCOPE)
endfunction()
