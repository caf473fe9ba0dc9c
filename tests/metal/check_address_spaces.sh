#!/bin/sh
# Compiles device code of Metal as C++ for OpenCL, to nothing: pointers of different address spaces do not mix there, as they do not in
# Metal. check_address_spaces.sh CLANG FILE...
here=$(dirname "$0")
clang=$1
shift
for file; do
    # Attributes of arguments are Metal's alone.
    sed 's/\[\[[^]]*\]\]//g' "$file" |
        "$clang" -target spir64 -x clcpp -cl-std=clc++ -cl-no-stdinc -fsyntax-only -w -DHALATION_MSL_CHECK -I"$here" - || {
        echo "$file: clang refuses it" >&2
        exit 1
    }
done
