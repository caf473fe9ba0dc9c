# cmake --install: headers, static and shared libraries, what halation_add_kernels() needs in a user's own project, and the
# packages of CMake and pkg-config that say where all of that is.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Halation)
set(data_dir ${CMAKE_INSTALL_DATADIR}/halation)

install(FILES runtime/include/halation.h runtime/include/halation.hpp runtime/include/halation_kernels.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

install(TARGETS halation_headers halation_runtime halation_runtime_shared EXPORT HalationTargets)
install(EXPORT HalationTargets NAMESPACE halation:: DESTINATION ${package_dir})
install(TARGETS halation_kernels halation_kernels_shared EXPORT HalationKernelsTargets)
install(EXPORT HalationKernelsTargets NAMESPACE halation:: DESTINATION ${package_dir})

if(TARGET halation_generators)
    install(TARGETS halation_generators EXPORT HalationGenerateTargets)
    install(EXPORT HalationGenerateTargets NAMESPACE halation:: DESTINATION ${package_dir})
    install(DIRECTORY generators schedules DESTINATION ${data_dir} FILES_MATCHING PATTERN "*.h")
    install(FILES generators/main.cpp DESTINATION ${data_dir}/generators)
    install(FILES ${PROJECT_BINARY_DIR}/generators/recurrences.txt DESTINATION ${data_dir})
    install(FILES runtime/kernel_glue.cpp runtime/kernel_glue_gpu.cpp DESTINATION ${data_dir}/runtime)
    install(FILES cmake/HalationKernels.cmake DESTINATION ${package_dir})
endif()
if(TARGET halation_lab)
    install(TARGETS halation_lab halation_bench halation_command_line halation_oracle halation_safetensors
        EXPORT HalationLabTargets)
    install(EXPORT HalationLabTargets NAMESPACE halation:: DESTINATION ${package_dir})
    install(FILES lab/main.cpp lab/lab.h DESTINATION ${data_dir}/lab)
    # Halide's library is where the build found it.
    set_target_properties(halation-lab PROPERTIES INSTALL_RPATH $<TARGET_FILE_DIR:Halide::Halide>)
    install(TARGETS halation-lab RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET halation)
    install(TARGETS halation RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(cmake/HalationConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/HalationConfig.cmake
    INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/HalationConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/HalationConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/HalationConfigVersion.cmake
    DESTINATION ${package_dir})

file(RELATIVE_PATH HALATION_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/halation.pc.in ${CMAKE_CURRENT_BINARY_DIR}/halation.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/halation.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
