# halation_add_kernels(<target> [TABLE <function>]
#     [RECURRENCES <name>...] [FORMS recurrent|chunkwise|parallel ...] [TYPES f32|f16|bf16 ...] [GATES f32|same ...]
#     [FEATURE_MAPS <map>...] [KEY_DIMS any|<K> ...] [VALUE_DIMS any|<V> ...] [BACKENDS cpu|cuda|opencl|metal ...] [ISAS <isa>...]
#     [SCHEDULE [<name>] <parameter>=<value>...] [TUNED <file>...]
#     [VARIANTS <file>...]
#     [RECURRENCE_SOURCES <file>...] [SCHEDULE_SOURCES <file>...] [GENERATOR <target>])
#
# A library of generated kernels: all combinations of what is given. It offers one symbol,
# `const halation_kernel_table *<function>(void)`, by default of the target's name. Everything else in it, Halide's runtime
# functions included, is local, so that any number of such libraries and Halide itself can be linked into one program.
#
#   FORMS         default: recurrent and chunkwise
#   TYPES         of q, k, v and o; default f32. GATES: f32 (default), or the same as q
#   FEATURE_MAPS  elu+1, relu, softmax, identity, for linear_normalized and bidirectional
#   KEY_DIMS      a number makes kernels for that K alone, which the compiler knows: bench/key_dims.cpp. Default any
#   BACKENDS      default cpu. Kernels of the others are in the same library, and not touched where there is no such device
#   ISAS          of the CPU: x86_64, avx2, avx512 or neon; default: those of the processor that is built for
#   SCHEDULE      parameters of the schedule (schedules/machines.h), and the name of one of your own
#   TUNED         files that halation-lab keep wrote: schedules for kernels that SCHEDULE says nothing of; those of the variable
#                 HALATION_TUNED come first
#   VARIANTS      files of lines as in variants.txt, of which BACKENDS, ISAS and TYPES keep only those
#   RECURRENCE_SOURCES, SCHEDULE_SOURCES  recurrences and schedules of your own: halation::RegisterRow, RegisterSchedule
#   GENERATOR     the program that makes the kernels, if it is yours
#
# Kernels for CUDA are PTX and, where ptxas is found (HALATION_PTXAS), machine code for HALATION_CUDA_ARCHITECTURES (default
# 80;90). How many registers each takes is in NAME.registers.txt beside its object file.
#
# Kernels are made again when the program that makes them changes, each by itself.
function(halation_add_kernels target)
    set(lists RECURRENCES FORMS TYPES GATES FEATURE_MAPS KEY_DIMS VALUE_DIMS BACKENDS ISAS SCHEDULE TUNED VARIANTS
        RECURRENCE_SOURCES SCHEDULE_SOURCES)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "TABLE;GENERATOR" "${lists}")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "halation_add_kernels(${target}): '${arg_UNPARSED_ARGUMENTS}' belongs to none of TABLE, GENERATOR, ${lists}")
    endif()
    if(NOT arg_TABLE)
        set(arg_TABLE ${target})
    endif()
    if(NOT arg_ISAS)
        halation_native_isas(arg_ISAS)
    endif()
    set(types_of_tables ${arg_TYPES})
    set(backends_of_tables ${arg_BACKENDS})
    halation_read_tuned("${target}" tuned_lines)
    halation_expand_words("${target}" variants)
    foreach(file IN LISTS arg_VARIANTS)
        halation_expand_variants(${file} "${backends_of_tables}" "${arg_ISAS}" "${types_of_tables}" expanded)
        list(APPEND variants ${expanded})
    endforeach()
    if(NOT variants)
        message(FATAL_ERROR "halation_add_kernels(${target}): there is no kernel of RECURRENCES '${arg_RECURRENCES}' or VARIANTS '${arg_VARIANTS}' for ISAS ${arg_ISAS} and TYPES ${arg_TYPES}")
    endif()
    halation_generator("${target}" generator)
    halation_make_kernels(${target} ${arg_TABLE} "${generator}" "${variants}")
endfunction()

# Those of the processor that is built for: objects of another architecture cannot be linked beside its own.
function(halation_native_isas result)
    if(CMAKE_SYSTEM_NAME STREQUAL "iOS" OR CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
        set(${result} neon PARENT_SCOPE)
    else()
        set(${result} x86_64 avx2 avx512 PARENT_SCOPE)
    endif()
endfunction()

# The lines of files of kept schedules, without their comments.
macro(halation_read_tuned target result)
    set(${result} "")
    foreach(file IN LISTS HALATION_TUNED arg_TUNED)
        get_filename_component(file "${file}" ABSOLUTE)
        if(NOT EXISTS "${file}")
            message(FATAL_ERROR "halation_add_kernels(${target}): there is no file ${file} of kept schedules (TUNED, HALATION_TUNED)")
        endif()
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
        file(READ "${file}" text)
        string(REGEX REPLACE "#[^\n]*" "" text "${text}")  # before CMake sees a list in it
        if(text MATCHES "[][;@]")
            message(FATAL_ERROR "${file}: the lines of kept schedules have no [, ], ; or @")
        endif()
        string(REGEX REPLACE "[\r\n]+" ";" lines "${text}")
        foreach(line IN LISTS lines)
            string(REGEX REPLACE "[ \t]+" " " line "${line}")
            string(STRIP "${line}" line)
            if(line STREQUAL "")
                continue()
            endif()
            if(NOT line MATCHES "^((recurrence|form|backend|isa|type|gates|feature_map|key_dim|value_dim|parameters|schedule)=[^ ]+ ?)+$"
               OR NOT line MATCHES "recurrence=" OR NOT line MATCHES "(parameters|schedule)=")
                message(FATAL_ERROR "${file}: '${line}' is no kept schedule: recurrence=..., any of form= backend= isa= type= gates= feature_map= key_dim= value_dim=, and parameters= or schedule=")
            endif()
            list(APPEND ${result} "${line}")
        endforeach()
    endforeach()
endmacro()

# The program that makes the kernels: one of the user's own if there are sources of theirs.
macro(halation_generator target result)
    if(arg_GENERATOR)
        set(${result} ${arg_GENERATOR})
    elseif(arg_RECURRENCE_SOURCES OR arg_SCHEDULE_SOURCES)
        halation_add_generator(${target}_generate ${arg_RECURRENCE_SOURCES} ${arg_SCHEDULE_SOURCES})
        set(${result} ${target}_generate)
    else()
        if(NOT TARGET halation_generate)
            halation_add_generator(halation_generate)
        endif()
        set(${result} halation_generate)
    endif()
endmacro()

# halation_add_generator(<target> <source>...): a program that knows these recurrences and schedules besides Halation's.
function(halation_add_generator target)
    if(NOT TARGET halation::generators)
        message(FATAL_ERROR "${target}: making kernels needs Halide 21 (find_package(Halation COMPONENTS generate)); a cross build takes the program of a native one, HALATION_GENERATE_EXECUTABLE")
    endif()
    add_executable(${target} ${HALATION_ROOT}/generators/main.cpp ${ARGN})
    target_link_libraries(${target} PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,halation::generators>")
endfunction()

# halation_add_lab(<target> <source>...): a lab (docs/experiment.md) that knows these recurrences and schedules besides Halation's.
function(halation_add_lab target)
    if(NOT TARGET halation::lab)
        message(FATAL_ERROR "${target}: the lab needs Halide 21 (find_package(Halation COMPONENTS lab))")
    endif()
    # It loads kernels, which find the functions of Halide's runtime that they call in it.
    add_executable(${target} ${HALATION_ROOT}/lab/main.cpp ${HALATION_ROOT}/runtime/kernel_glue.cpp ${HALATION_ROOT}/runtime/kernel_glue_gpu.cpp ${ARGN})
    set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
    target_link_libraries(${target} PRIVATE halation::lab "$<LINK_LIBRARY:WHOLE_ARCHIVE,halation::generators>")
    target_include_directories(${target} SYSTEM PRIVATE ${HALATION_HALIDE_INCLUDE})
endfunction()

# The variants in the caller's list `list_name`, each with each of the words as its `key`.
function(halation_multiply list_name key words)
    set(longer "")
    foreach(line IN LISTS ${list_name})
        foreach(word IN LISTS words)
            list(APPEND longer "${line} ${key}=${word}")
        endforeach()
    endforeach()
    set(${list_name} ${longer} PARENT_SCOPE)
endfunction()

function(halation_require_words target keyword words allowed)
    foreach(word IN LISTS words)
        if(NOT word IN_LIST allowed)
            list(JOIN allowed ", " list)
            message(FATAL_ERROR "halation_add_kernels(${target}): ${keyword} has '${word}'; may be ${list}")
        endif()
    endforeach()
endfunction()

# All combinations of the caller's keywords, each as the words of one variant.
macro(halation_expand_words target result)
    set(${result} "")
    foreach(default IN ITEMS "FORMS=recurrent;chunkwise" TYPES=f32 GATES=f32 KEY_DIMS=any VALUE_DIMS=any BACKENDS=cpu)
        string(REGEX MATCH "^([A-Z_]+)=(.*)$" matched "${default}")
        if(NOT arg_${CMAKE_MATCH_1})
            set(arg_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
        endif()
    endforeach()
    halation_require_words("${target}" FORMS "${arg_FORMS}" "recurrent;chunkwise;parallel")
    halation_require_words("${target}" TYPES "${arg_TYPES}" "f32;f16;bf16")
    halation_require_words("${target}" GATES "${arg_GATES}" "f32;same")
    halation_require_words("${target}" FEATURE_MAPS "${arg_FEATURE_MAPS}" "elu+1;relu;softmax;identity")
    halation_require_words("${target}" BACKENDS "${arg_BACKENDS}" "cpu;cuda;opencl;metal")
    halation_require_words("${target}" ISAS "${arg_ISAS}" "x86_64;avx2;avx512;neon")
    foreach(dim IN LISTS arg_KEY_DIMS arg_VALUE_DIMS)
        if(NOT dim MATCHES "^(any|[1-9][0-9]*)$")
            message(FATAL_ERROR "halation_add_kernels(${target}): a dim is '${dim}'; may be any, or a number")
        endif()
    endforeach()
    # An installed Halation knows the names of its recurrences; those of a user's own are known when their program is.
    if(EXISTS ${HALATION_ROOT}/recurrences.txt AND NOT arg_RECURRENCE_SOURCES AND NOT arg_GENERATOR)
        file(STRINGS ${HALATION_ROOT}/recurrences.txt known)
        halation_require_words("${target}" RECURRENCES "${arg_RECURRENCES}" "${known}")
    endif()
    set(lines "")
    foreach(recurrence IN LISTS arg_RECURRENCES)
        list(APPEND lines "recurrence=${recurrence}")
    endforeach()
    halation_multiply(lines form "${arg_FORMS}")
    halation_multiply(lines backend "${arg_BACKENDS}")
    halation_multiply(lines isa "${arg_ISAS}")
    halation_multiply(lines type "${arg_TYPES}")
    halation_multiply(lines gates "${arg_GATES}")
    if(arg_FEATURE_MAPS)
        halation_multiply(lines feature_map "${arg_FEATURE_MAPS}")
    endif()
    halation_multiply(lines key_dim "${arg_KEY_DIMS}")
    halation_multiply(lines value_dim "${arg_VALUE_DIMS}")
    set(parameters ${arg_SCHEDULE})
    list(FILTER parameters INCLUDE REGEX "=")
    set(schedule ${arg_SCHEDULE})
    list(FILTER schedule EXCLUDE REGEX "=")
    list(LENGTH schedule names)
    if(names GREATER 1)
        message(FATAL_ERROR "halation_add_kernels(${target}): SCHEDULE has two names: ${schedule}")
    endif()
    if(parameters)
        list(JOIN parameters "," parameters)
        halation_multiply(lines parameters "${parameters}")
    endif()
    if(schedule)
        halation_multiply(lines schedule "${schedule}")
    endif()
    foreach(line IN LISTS lines)
        halation_finish_variant("${line}" finished)
        list(APPEND ${result} ${finished})
    endforeach()
    list(REMOVE_DUPLICATES ${result})
endmacro()

# Gates of the same type, and the name of the kernel. Nothing where it would be another variant's twin.
function(halation_finish_variant line result)
    set(${result} "" PARENT_SCOPE)
    string(REPLACE " " ";" words "${line}")
    foreach(word IN LISTS words)
        string(REGEX MATCH "^([a-z_]+)=(.*)$" matched "${word}")
        set(word_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
    endforeach()
    if(NOT word_backend STREQUAL "cpu")
        string(REPLACE "isa=${word_isa}" "isa=gpu" line "${line}")  # ISAS are the CPU's
        set(word_isa gpu)
    endif()
    if(word_gates STREQUAL "same")
        if(word_type STREQUAL "f32")
            return()  # the same kernel as gates f32
        endif()
        string(REPLACE "gates=same" "gates=${word_type}" line "${line}")
        set(word_gates ${word_type})
    endif()
    set(name ${word_recurrence})
    if(word_feature_map)
        string(APPEND name _${word_feature_map})
    endif()
    string(APPEND name _${word_form}_${word_backend}_${word_isa}_${word_type})
    if(NOT word_gates STREQUAL "f32")
        string(APPEND name _gates_${word_gates})
    endif()
    foreach(dim IN ITEMS key value)
        if(word_${dim}_dim AND NOT word_${dim}_dim STREQUAL "any")
            string(SUBSTRING ${dim} 0 1 letter)
            string(APPEND name _${letter}${word_${dim}_dim})
        endif()
    endforeach()
    foreach(word IN ITEMS schedule parameters)
        if(word_${word})
            string(APPEND name _${word_${word}})
        endif()
    endforeach()
    string(REPLACE "elu+1" "elu" name "${name}")
    string(MAKE_C_IDENTIFIER "${name}" name)
    if(NOT word_schedule AND NOT word_parameters)
        halation_tuned_words("${line}" kept)  # not part of the name: the same kernel, made better
        string(APPEND line "${kept}")
    endif()
    halation_native_isas(isas)
    if(NOT word_backend STREQUAL "cpu" AND isas STREQUAL "neon")
        string(APPEND line " arch=arm")
    endif()
    if(CMAKE_SYSTEM_NAME STREQUAL "Darwin")
        string(APPEND line " os=osx")
    elseif(CMAKE_SYSTEM_NAME STREQUAL "iOS")
        string(APPEND line " os=ios")
    endif()
    set(${result} "name=${name} ${line}" PARENT_SCOPE)
endfunction()

# The schedule that a kept line gives to a variant: the line must have no other words than the variant's, and that with most of
# them counts, of those with as many the last.
function(halation_tuned_words variant result)
    string(REPLACE " " ";" words "${variant}")
    set(${result} "" PARENT_SCOPE)
    set(most 0)
    foreach(line IN LISTS tuned_lines)
        string(REPLACE " " ";" kept "${line}")
        set(schedule ${kept})
        list(FILTER schedule INCLUDE REGEX "^(parameters|schedule)=")
        list(FILTER kept EXCLUDE REGEX "^(parameters|schedule)=")
        list(LENGTH kept count)
        list(REMOVE_ITEM kept ${words})
        if(NOT kept AND NOT count LESS most)
            list(JOIN schedule " " schedule)
            set(${result} " ${schedule}" PARENT_SCOPE)
            set(most ${count})
        endif()
    endforeach()
endfunction()

# The lines of a variants table, each with its lists multiplied out.
function(halation_expand_variants file backends isas types result)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(STRINGS ${file} table REGEX "^[^#]")
    set(columns recurrence form backend isa type gates feature_map)
    set(kept "")
    foreach(row IN LISTS table)
        string(REGEX REPLACE "[ \t]+" ";" fields "${row}")
        list(REMOVE_ITEM fields "")
        list(LENGTH fields count)
        if(count LESS 7)
            message(FATAL_ERROR "${file}: expected seven columns, and words like key_dim=64,128 after them; got ${count}: ${row}")
        endif()
        set(lines "")
        foreach(column IN LISTS columns)
            list(POP_FRONT fields field)
            string(REPLACE "," ";" words "${field}")
            if(column STREQUAL "backend" AND backends)
                halation_keep_only(words "${backends}")
            elseif(column STREQUAL "isa" AND isas)
                halation_keep_only(words "${isas};gpu")
            elseif(column STREQUAL "type" AND types)
                halation_keep_only(words "${types}")
            endif()
            if(column STREQUAL "recurrence")
                list(TRANSFORM words PREPEND "recurrence=" OUTPUT_VARIABLE lines)
            elseif(NOT field STREQUAL "-")
                halation_multiply(lines ${column} "${words}")
            endif()
        endforeach()
        foreach(field IN LISTS fields)
            string(REGEX MATCH "^([a-z_]+)=(.*)$" matched "${field}")
            set(key ${CMAKE_MATCH_1})
            set(words "${CMAKE_MATCH_2}")
            if(NOT key STREQUAL "parameters")
                string(REPLACE "," ";" words "${words}")
            endif()
            halation_multiply(lines "${key}" "${words}")
        endforeach()
        foreach(line IN LISTS lines)
            halation_finish_variant("${line}" finished)
            list(APPEND kept ${finished})
        endforeach()
    endforeach()
    set(${result} ${kept} PARENT_SCOPE)
endfunction()

function(halation_keep_only list_name allowed)
    set(those "")
    foreach(word IN LISTS ${list_name})
        if(word IN_LIST allowed)
            list(APPEND those ${word})
        endif()
    endforeach()
    set(${list_name} ${those} PARENT_SCOPE)
endfunction()

set(HALATION_CUDA_ARCHITECTURES 80 90 CACHE STRING "Compute capabilities for which kernels hold machine code; others compile PTX")

# What is said to the generator of machine code for CUDA: nothing where there is no ptxas, and the driver's own compiler makes it
# when a kernel is first used.
function(halation_cubin_words target result)
    find_program(HALATION_PTXAS ptxas DOC "CUDA's assembler; without it kernels for CUDA are PTX only")
    set(${result} "" PARENT_SCOPE)
    if(HALATION_PTXAS AND HALATION_CUDA_ARCHITECTURES)
        foreach(architecture IN LISTS HALATION_CUDA_ARCHITECTURES)
            if(NOT architecture MATCHES "^[1-9][0-9]+$")
                message(FATAL_ERROR "halation_add_kernels(${target}): HALATION_CUDA_ARCHITECTURES has '${architecture}'; may be numbers such as 80;90")
            endif()
        endforeach()
        list(JOIN HALATION_CUDA_ARCHITECTURES "," list)
        set(${result} ptxas=${HALATION_PTXAS} cuda=${list} PARENT_SCOPE)
    endif()
endfunction()

function(halation_make_kernels target table generator variants)
    set(directory ${CMAKE_CURRENT_BINARY_DIR}/${target})
    file(MAKE_DIRECTORY ${directory})
    set(objects "")
    set(cubin_words "")
    if(variants MATCHES " backend=cuda ")
        halation_cubin_words("${target}" cubin_words)
    endif()
    foreach(variant IN LISTS variants)
        string(REPLACE " " ";" words "${variant}")
        string(REGEX REPLACE "^name=([^ ]*) .*$" "\\1" name "${variant}")
        set(object ${directory}/${name}.o)
        set(cubins "")
        set(registers "")
        if(cubin_words AND variant MATCHES " backend=cuda ")
            set(cubins ${cubin_words})
            set(registers ${directory}/${name}.registers.txt)
        endif()
        add_custom_command(OUTPUT ${object}
            BYPRODUCTS ${registers}
            COMMAND ${generator} kernel ${directory} ${cubins} ${words}
            DEPENDS ${generator}
            COMMENT "Kernel ${name}"
            VERBATIM)
        list(APPEND objects ${object})
    endforeach()

    list(JOIN variants "\n" lines)
    file(CONFIGURE OUTPUT ${directory}/variants.txt CONTENT "${lines}\n" @ONLY)
    add_custom_command(OUTPUT ${directory}/table.cpp
        COMMAND ${generator} table ${table} ${directory}/variants.txt ${directory}/table.cpp
        DEPENDS ${generator} ${directory}/variants.txt
        VERBATIM)
    if(NOT target STREQUAL "halation_kernels")  # which halation.h declares
        file(CONFIGURE OUTPUT ${directory}/include/${target}.h CONTENT
"/* The kernels of ${target}: halation_context_add_kernels(context, ${table}()). */
#include <halation_kernels.h>
#ifdef __cplusplus
extern \"C\"
#endif
const halation_kernel_table *${table}(void);
" @ONLY)
    endif()

    add_library(${target}_glue OBJECT ${directory}/table.cpp ${HALATION_ROOT}/runtime/kernel_glue.cpp ${HALATION_ROOT}/runtime/kernel_glue_gpu.cpp)
    target_compile_features(${target}_glue PRIVATE cxx_std_17)
    target_link_libraries(${target}_glue PRIVATE halation::headers)
    target_include_directories(${target}_glue SYSTEM PRIVATE ${HALATION_HALIDE_INCLUDE})
    set_target_properties(${target}_glue PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)

    # One relocatable object with one global symbol.
    set(object_files ${objects})
    list(TRANSFORM objects REPLACE ".+" "\"\\0\"")  # ld splits at blanks
    list(JOIN objects "\n" object_lines)
    file(CONFIGURE OUTPUT ${directory}/objects.rsp CONTENT "${object_lines}\n" @ONLY)
    set(combined ${directory}/${target}.o)
    set(combine COMMAND ${CMAKE_LINKER} -r -o ${combined} $<TARGET_OBJECTS:${target}_glue> @${directory}/objects.rsp
        COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=${table} ${combined})
    if(APPLE)  # whose linker does both
        set(combine COMMAND ${CMAKE_LINKER} -r -exported_symbol _${table} -o ${combined} $<TARGET_OBJECTS:${target}_glue> @${directory}/objects.rsp)
    endif()
    add_custom_command(OUTPUT ${combined}
        ${combine}
        DEPENDS ${object_files} $<TARGET_OBJECTS:${target}_glue> ${directory}/objects.rsp
        COMMENT "Linking ${target}"
        COMMAND_EXPAND_LISTS
        VERBATIM)
    add_library(${target} STATIC ${combined})
    add_dependencies(${target} ${target}_glue)  # Makefiles do not see that its objects are of the same build
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX HALATION_OBJECT ${combined})
    target_link_libraries(${target} PUBLIC halation::headers)
    target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${directory}/include>)
endfunction()
