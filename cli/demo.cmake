# The sources of `halation demo`.
set(HALATION_DEMO_SOURCES
  demo_chart.cpp
  demo_command.cpp
  demo_counts.cpp
  demo_figures.cpp
  demo_measure.cpp
  demo_memories.cpp
  demo_progress.cpp
  demo_report.cpp
  demo_runner.cpp
  demo_score.cpp
  demo_style.cpp
  demo_summary.cpp
  demo_task.cpp)

if(HALATION_BUILD_TESTS)
  find_package(Catch2 2 REQUIRED)
  find_package(CLI11 REQUIRED)
  find_package(fmt QUIET)
  add_executable(demo_test ../tests/demo_test.cpp ../tests/main.cpp options.cpp ${HALATION_DEMO_SOURCES})
  target_include_directories(demo_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/..)
  target_link_libraries(demo_test PRIVATE halation::kernels halation::runtime halation::safetensors CLI11::CLI11 Catch2::Catch2)
  if(TARGET fmt::fmt-header-only)
    target_link_libraries(demo_test PRIVATE fmt::fmt-header-only)
  else()
    target_compile_definitions(demo_test PRIVATE FMT_HEADER_ONLY)
  endif()
  list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " emulator)
  target_compile_definitions(demo_test PRIVATE HALATION_CLI="${emulator} $<TARGET_FILE:halation>")
  add_dependencies(demo_test halation)
  add_test(NAME demo_test COMMAND demo_test)
endif()
