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
