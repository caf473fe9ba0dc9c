# halation_add_kernels(<target> TABLE <function> VARIANTS <file>... [ISAS <isa>...] [TYPES <type>...] [GENERATOR <target>])
#
# A library of generated kernels. <file> holds lines of the variants table (see variants.txt); ISAS and TYPES keep only
# those kernels. Without ISAS they are those of the processor that is built for, x86_64, avx2 and avx512, or neon: objects of
# another architecture cannot be linked beside its own. GENERATOR is the program that makes them: halation_generate, unless
# a recurrence is one of your own.
#
# The library offers one symbol, `const halation_kernel_table *<function>(void)`. Everything else in it, Halide's runtime
# functions included, is local, so that any number of such libraries and Halide itself can be linked into one program.
function(halation_add_kernels target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "TABLE;GENERATOR" "VARIANTS;ISAS;TYPES")
    if(NOT arg_GENERATOR)
        set(arg_GENERATOR halation_generate)
    endif()
    if(NOT arg_ISAS)
        if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
            set(arg_ISAS neon)
        else()
            set(arg_ISAS x86_64 avx2 avx512)
        endif()
    endif()
    if(NOT arg_TABLE OR NOT arg_VARIANTS)
        message(FATAL_ERROR "halation_add_kernels(${target}) needs TABLE <function> and VARIANTS <file>")
    endif()
    set(directory ${CMAKE_CURRENT_BINARY_DIR}/${target})
    file(MAKE_DIRECTORY ${directory})

    set(variants "")
    foreach(file IN LISTS arg_VARIANTS)
        halation_expand_variants(${file} "${arg_ISAS}" "${arg_TYPES}" expanded)
        list(APPEND variants ${expanded})
    endforeach()
    if(NOT variants)
        message(FATAL_ERROR "halation_add_kernels(${target}): no kernel of ${arg_VARIANTS} is for ISAs ${arg_ISAS} and types ${arg_TYPES}")
    endif()

    set(objects "")
    foreach(variant IN LISTS variants)
        string(REPLACE " " ";" words "${variant}")
        halation_variant_name("${words}" name)
        set(object ${directory}/${name}.o)
        add_custom_command(OUTPUT ${object}
            COMMAND ${arg_GENERATOR} kernel ${directory} ${words}
            DEPENDS ${arg_GENERATOR}
            COMMENT "Kernel ${name}"
            VERBATIM)
        list(APPEND objects ${object})
    endforeach()

    list(JOIN variants "\n" lines)
    file(CONFIGURE OUTPUT ${directory}/variants.txt CONTENT "${lines}\n" @ONLY)
    add_custom_command(OUTPUT ${directory}/table.cpp
        COMMAND ${arg_GENERATOR} table ${arg_TABLE} ${directory}/variants.txt ${directory}/table.cpp
        DEPENDS ${arg_GENERATOR} ${directory}/variants.txt
        VERBATIM)

    add_library(${target}_glue OBJECT ${directory}/table.cpp ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../runtime/kernel_glue.cpp)
    target_compile_features(${target}_glue PRIVATE cxx_std_17)
    target_link_libraries(${target}_glue PRIVATE halation::headers)
    get_target_property(halide_include Halide::Runtime INTERFACE_INCLUDE_DIRECTORIES)
    target_include_directories(${target}_glue SYSTEM PRIVATE ${halide_include})
    set_target_properties(${target}_glue PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)

    # One relocatable object with one global symbol.
    set(object_files ${objects})
    list(TRANSFORM objects REPLACE ".+" "\"\\0\"")  # ld splits at blanks
    list(JOIN objects "\n" object_lines)
    file(CONFIGURE OUTPUT ${directory}/objects.rsp CONTENT "${object_lines}\n" @ONLY)
    set(combined ${directory}/${target}.o)
    add_custom_command(OUTPUT ${combined}
        COMMAND ${CMAKE_LINKER} -r -o ${combined} $<TARGET_OBJECTS:${target}_glue> @${directory}/objects.rsp
        COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=${arg_TABLE} ${combined}
        DEPENDS ${object_files} $<TARGET_OBJECTS:${target}_glue> ${directory}/objects.rsp
        COMMENT "Linking ${target}"
        COMMAND_EXPAND_LISTS
        VERBATIM)
    add_library(${target} STATIC ${combined})
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
    target_link_libraries(${target} PUBLIC halation::headers)
endfunction()

# The lines of a variants table, each with its lists multiplied out: seven words separated by blanks.
function(halation_expand_variants file isas types result)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(STRINGS ${file} lines REGEX "^[^#]")
    set(expanded "")
    foreach(line IN LISTS lines)
        string(REGEX REPLACE "[ \t]+" ";" columns "${line}")
        list(REMOVE_ITEM columns "")
        list(LENGTH columns count)
        if(NOT count EQUAL 7)
            message(FATAL_ERROR "${file}: expected seven columns, got ${count}: ${line}")
        endif()
        set(partial "")
        foreach(column IN LISTS columns)
            string(REPLACE "," ";" words "${column}")
            if(NOT partial)
                set(partial ${words})
                continue()
            endif()
            set(longer "")
            foreach(prefix IN LISTS partial)
                foreach(word IN LISTS words)
                    list(APPEND longer "${prefix} ${word}")
                endforeach()
            endforeach()
            set(partial ${longer})
        endforeach()
        list(APPEND expanded ${partial})
    endforeach()
    set(kept "")
    foreach(variant IN LISTS expanded)
        string(REPLACE " " ";" words "${variant}")
        list(GET words 3 isa)
        list(GET words 4 type)
        list(GET words 5 gates)
        if(gates STREQUAL "same")
            if(type STREQUAL "f32")
                continue()  # the same kernel as gates f32
            endif()
            list(REMOVE_AT words 5)
            list(INSERT words 5 ${type})
            list(JOIN words " " variant)
        endif()
        if((NOT isas OR isa IN_LIST isas) AND (NOT types OR type IN_LIST types))
            list(APPEND kept "${variant}")
        endif()
    endforeach()
    set(${result} ${kept} PARENT_SCOPE)
endfunction()

# The name that halation_generate gives a variant.
function(halation_variant_name words result)
    list(POP_FRONT words recurrence form backend isa type gates feature_map)
    set(name ${recurrence})
    if(feature_map STREQUAL "elu+1")
        string(APPEND name _elu)
    elseif(NOT feature_map STREQUAL "-")
        string(APPEND name _${feature_map})
    endif()
    string(APPEND name _${form}_${backend}_${isa}_${type})
    if(NOT gates STREQUAL "f32")
        string(APPEND name _gates_${gates})
    endif()
    set(${result} ${name} PARENT_SCOPE)
endfunction()
