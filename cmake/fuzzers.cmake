# libFuzzer over what reads texts and files of users: tests/fuzz/readers. Built by clang, by `scripts/fuzz --parsers`.
#
# Only ir, frontend, passes (for schedule lines alone) and the reader of .npy files are instrumented; nothing else is linked.
add_library(tilewright_npy STATIC ${PROJECT_SOURCE_DIR}/runtime/npy.cpp ${PROJECT_SOURCE_DIR}/runtime/files.cpp
  ${PROJECT_SOURCE_DIR}/runtime/tensor.cpp ${PROJECT_SOURCE_DIR}/runtime/bind.cpp)
target_link_libraries(tilewright_npy PUBLIC tilewright_options tilewright_ir)
set(folder ${PROJECT_SOURCE_DIR}/tests/fuzz/readers)
add_library(tilewright_readers STATIC ${folder}/readers.cpp)
target_link_libraries(tilewright_readers PUBLIC tilewright_npy tilewright_frontend tilewright_ir)
add_library(tilewright_line_reader STATIC ${folder}/schedule_line_reader.cpp)
target_link_libraries(tilewright_line_reader PUBLIC tilewright_passes tilewright_readers)
foreach(reader program ir npy schedule_line)
  add_executable(fuzz_${reader} EXCLUDE_FROM_ALL ${folder}/libfuzzer.cpp)
  target_compile_definitions(fuzz_${reader} PRIVATE TILEWRIGHT_READER=read_as_${reader})
  target_link_libraries(fuzz_${reader} PRIVATE tilewright_readers)
  target_link_options(fuzz_${reader} PRIVATE -fsanitize=fuzzer)
endforeach()
target_link_libraries(fuzz_schedule_line PRIVATE tilewright_line_reader)
