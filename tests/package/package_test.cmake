# Installs the build into an empty folder and builds, from there alone, what users would.
#   cmake -DBUILD=<build folder> -DSOURCE=<source folder> -P package_test.cmake
include(${CMAKE_CURRENT_LIST_DIR}/../run.cmake)

set(folder ${BUILD}/package_test)
file(REMOVE_RECURSE ${folder})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${folder}/prefix)
file(COPY ${SOURCE}/examples DESTINATION ${folder})
set(common -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=${folder}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/package -B ${folder}/users ${common} -DEXAMPLES=${folder}/examples)
run(${CMAKE_COMMAND} -S ${folder}/examples/own -B ${folder}/own ${common})
run(${CMAKE_COMMAND} -S ${folder}/examples/steps -B ${folder}/steps ${common})
foreach(project IN ITEMS users own steps)
    run(${CMAKE_COMMAND} --build ${folder}/${project})
    run(${CMAKE_CTEST_COMMAND} --test-dir ${folder}/${project} --output-on-failure)
endforeach()

# What cannot be meant is refused when CMake runs.
foreach(words IN ITEMS "RECURRENCES gatd" "RECURRENCES gated FORMS sideways" "RECURRENCES gated TYPES f64" "RECURRENCES gated KEY_DIMS some"
        "RECURRENCES gated TUNED none.txt" "RECURRENCES gated TUNED wrong.txt" "RECURRENCES gated BACKENDS tpu" "RECURRENCES gated COLOURS red" "TYPES f32")
    file(WRITE ${folder}/bad/wrong.txt "recurence=gated parameters=chunk=8\n")
    file(WRITE ${folder}/bad/CMakeLists.txt "cmake_minimum_required(VERSION 3.28)
project(bad LANGUAGES CXX)
find_package(Halation REQUIRED COMPONENTS generate)
halation_add_kernels(bad ${words})
")
    execute_process(COMMAND ${CMAKE_COMMAND} -S ${folder}/bad -B ${folder}/bad/build ${common}
        RESULT_VARIABLE code OUTPUT_QUIET ERROR_VARIABLE output)
    if(code EQUAL 0 OR NOT output MATCHES "halation_add_kernels.bad.|wrong.txt")
        message(FATAL_ERROR "halation_add_kernels(bad ${words}) is not refused: ${output}")
    endif()
endforeach()

# With Makefiles, and a program that is declared before its kernels.
file(WRITE ${folder}/make/CMakeLists.txt "cmake_minimum_required(VERSION 3.28)
project(make LANGUAGES C CXX)
find_package(Halation REQUIRED COMPONENTS generate)
add_executable(app app.cpp)
halation_add_kernels(my_kernels RECURRENCES gated FORMS recurrent)
target_link_libraries(app PRIVATE my_kernels halation::runtime)
")
file(WRITE ${folder}/make/app.cpp "#include <my_kernels.h>\nint main() { return my_kernels()->kernel_count > 0 ? 0 : 1; }\n")
run(${CMAKE_COMMAND} -G "Unix Makefiles" -DCMAKE_PREFIX_PATH=${folder}/prefix -S ${folder}/make -B ${folder}/make/build)
run(${CMAKE_COMMAND} --build ${folder}/make/build)
run(${folder}/make/build/app)

# The lab as it is installed, and one with a schedule of a user's own.
set(small --tokens 16 --heads-count 1 --key-dim 8 --value-dim 16 --seconds 0.01)
run(${folder}/prefix/bin/halation-lab try gated_delta ${small})
run(${folder}/steps/steps_lab try gated_delta steps step=2 ${small})
file(REMOVE_RECURSE ${folder})
