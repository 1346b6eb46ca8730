# Compiler options that every target of the project shares.

add_library(tilewright_options INTERFACE)
target_include_directories(tilewright_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(tilewright_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wswitch-enum -Werror)

# g++ 12 sees overlapping, endless and outlying copies in std::string where there are none (GCC bugs 105651, 105329).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(tilewright_options INTERFACE -Wno-restrict
    $<$<CONFIG:Release>:-Wno-stringop-overflow> $<$<CONFIG:Release>:-Wno-array-bounds>)
endif()
if(TILEWRIGHT_PRECOMPILE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(tilewright_options INTERFACE -fpch-preprocess)  # lets ccache see through precompiled headers
endif()

# Paths inside the binaries (of asserts, of debug information) start at the root of the tree, wherever that is.
target_compile_options(tilewright_options INTERFACE -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)

# Contraction is decided once, in the IR: the host compiler must not fuse multiply and add where the oracle, the
# interpreters or the simulator evaluate them.
target_compile_options(tilewright_options INTERFACE -ffp-contract=off)

if(TILEWRIGHT_SANITIZE)
  target_compile_options(tilewright_options INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(tilewright_options INTERFACE -fsanitize=address,undefined)
endif()
if(TILEWRIGHT_STATIC_LLVM)
  # Of LLVM, sections that nobody reaches are dropped. lld, where there is one, links this three times as fast.
  target_link_options(tilewright_options INTERFACE
    -static-libstdc++ -static-libgcc -Wl,--gc-sections -Wl,--as-needed)
  find_program(TILEWRIGHT_LLD ld.lld)
  if(TILEWRIGHT_LLD)
    target_link_options(tilewright_options INTERFACE -fuse-ld=lld)
  endif()
endif()
