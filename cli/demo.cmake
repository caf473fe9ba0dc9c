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
  add_executable(demo_test ../tests/demo_test.cpp ../tests/main.cpp options.cpp ${HALATION_DEMO_SOURCES})
  target_include_directories(demo_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/..)
  target_link_libraries(demo_test PRIVATE
    halation::kernels halation::runtime halation::command_line halation::safetensors halation_fmt Catch2::Catch2)
  list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " emulator)
  target_compile_definitions(demo_test PRIVATE HALATION_CLI="${emulator} $<TARGET_FILE:halation>")
  add_dependencies(demo_test halation)
  add_test(NAME demo_test COMMAND demo_test)
endif()
