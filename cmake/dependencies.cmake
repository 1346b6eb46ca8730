# Libraries from the system's package archive. NVRTC, nvJitLink and the driver are not among them: they are opened at
# run time, so that the program starts (and builds) without a GPU and without a toolkit.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)

add_library(tilewright_fmt INTERFACE)
if(TILEWRIGHT_STATIC_LLVM)
  get_target_property(fmt_definitions fmt::fmt INTERFACE_COMPILE_DEFINITIONS)
  get_target_property(fmt_include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
  add_library(tilewright_fmt_library STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt_library.cpp)
  target_compile_definitions(tilewright_fmt_library PUBLIC ${fmt_definitions})
  target_include_directories(tilewright_fmt_library SYSTEM PUBLIC ${fmt_include})
  target_link_libraries(tilewright_fmt INTERFACE tilewright_fmt_library)
else()
  target_link_libraries(tilewright_fmt INTERFACE fmt::fmt)
endif()

# LLVM 22. Its CMake package would drag in every optional library it was built with; llvm-config says all that is needed.
find_program(TILEWRIGHT_LLVM_CONFIG NAMES llvm-config-22 HINTS /usr/lib/llvm-22/bin REQUIRED)
set(TILEWRIGHT_LLVM_COMPONENTS
  core support irreader bitreader bitwriter linker passes analysis target targetparser
  nvptx x86codegen x86asmparser x86desc x86info orcjit executionengine jitlink)

function(tilewright_llvm_config result)
  execute_process(COMMAND ${TILEWRIGHT_LLVM_CONFIG} ${ARGN}
    OUTPUT_VARIABLE output OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(output UNIX_COMMAND "${output}")
  set(${result} ${output} PARENT_SCOPE)
endfunction()

tilewright_llvm_config(llvm_version --version)
tilewright_llvm_config(llvm_include --includedir)
if(NOT llvm_version MATCHES "^22\\.")
  message(FATAL_ERROR "LLVM 22 is needed, ${TILEWRIGHT_LLVM_CONFIG} is of version ${llvm_version}")
endif()
message(STATUS "LLVM ${llvm_version} (${TILEWRIGHT_LLVM_CONFIG})")

add_library(tilewright_llvm INTERFACE)
target_include_directories(tilewright_llvm SYSTEM INTERFACE ${llvm_include})
if(TILEWRIGHT_STATIC_LLVM)
  tilewright_llvm_config(llvm_libraries --link-static --libfiles ${TILEWRIGHT_LLVM_COMPONENTS})
  tilewright_llvm_config(llvm_system --link-static --system-libs ${TILEWRIGHT_LLVM_COMPONENTS})
  # The system's compression and XML libraries are linked from their archives where there is one; the C library stays
  # shared, for dlopen.
  set(llvm_system_static "")
  foreach(flag IN LISTS llvm_system)
    string(REGEX REPLACE "^(-l|.*/lib)([A-Za-z0-9+_]+)(\\.so.*)?$" "\\2" short "${flag}")
    if(short MATCHES "^(z|zstd|xml2|ffi|edit|tinfo|icuuc|icudata|lzma)$")
      list(APPEND llvm_system_static -l:lib${short}.a)
    else()
      list(APPEND llvm_system_static ${flag})
    endif()
  endforeach()
  add_library(tilewright_portable STATIC ${CMAKE_CURRENT_LIST_DIR}/portable.cpp)
  target_link_libraries(tilewright_llvm INTERFACE ${llvm_libraries} tilewright_portable ${llvm_system_static})
else()
  tilewright_llvm_config(llvm_libraries --link-shared --libfiles)
  target_link_libraries(tilewright_llvm INTERFACE ${llvm_libraries})
endif()
target_link_libraries(tilewright_llvm INTERFACE ${CMAKE_DL_LIBS} Threads::Threads)
