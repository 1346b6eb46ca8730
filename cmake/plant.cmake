# tilewright_planted(VARIABLE): in the list VARIABLE, replaces the passes that faults.txt names by copies in which each fault can be switched on,
# and adds the switch (tests/plant).
set(TILEWRIGHT_FAULTS ${PROJECT_SOURCE_DIR}/tests/plant/faults.txt)
function(tilewright_planted variable)
  add_executable(plant_faults ${PROJECT_SOURCE_DIR}/tests/plant/generate.cpp)
  target_link_libraries(plant_faults PRIVATE tilewright_options)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${TILEWRIGHT_FAULTS})
  file(STRINGS ${TILEWRIGHT_FAULTS} lines REGEX "^file ")
  list(REMOVE_DUPLICATES lines)
  set(result ${${variable}} ${PROJECT_SOURCE_DIR}/tests/plant/planted.cpp)
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^file +" "" file "${line}")
    set(original ${PROJECT_SOURCE_DIR}/${file})
    string(REPLACE "/" "_" name ${file})
    set(copy ${CMAKE_CURRENT_BINARY_DIR}/planted/${name})
    add_custom_command(OUTPUT ${copy}
      COMMAND plant_faults ${TILEWRIGHT_FAULTS} ${PROJECT_SOURCE_DIR} ${file} ${copy}
      DEPENDS plant_faults ${TILEWRIGHT_FAULTS} ${original} VERBATIM)
    list(REMOVE_ITEM result ${original})
    list(APPEND result ${copy})
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/planted)
  set(${variable} ${result} PARENT_SCOPE)
endfunction()
