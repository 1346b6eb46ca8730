# tilewright_library(NAME SOURCES … DEPENDS …): a folder's library. A folder without sources gives an interface
# library, so that a headers-only folder (or one that is being emptied) still configures.

function(tilewright_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_link_libraries(${name} PUBLIC tilewright_options ${ARG_DEPENDS})
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
