// Element types: DLPack's, their names in messages and their Halide counterparts.
#ifndef HALATION_RUNTIME_TYPES_H
#define HALATION_RUNTIME_TYPES_H

#include "halation.h"
#include "text.h"

namespace halation::runtime {

constexpr DLDataType float32{kDLFloat, 32, 1};
constexpr DLDataType float16{kDLFloat, 16, 1};
constexpr DLDataType bfloat16{kDLBfloat, 16, 1};

inline bool same_type(DLDataType a, DLDataType b) {
    return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

inline Text<40> type_name(DLDataType type) {
    const char *kinds[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
    Text<40> name;
    if (type.code < 7)
        name.add("%s%d", kinds[type.code], type.bits);
    else
        name.add("type code %d of %d bits", type.code, type.bits);
    if (type.lanes != 1) name.add(" x %d lanes", type.lanes);
    return name;
}

// What a C caller put into an enum, whatever that is: loading it as the enum would already be undefined.
template<typename Enum> int raw(const Enum &value) {
    static_assert(sizeof(Enum) == sizeof(int), "C enums are ints here");
    int number;
    memcpy(&number, &value, sizeof number);
    return number;
}

inline const char *form_name(int form) {
    const char *names[] = {"auto", "recurrent", "chunkwise", "parallel"};
    return form >= 0 && form <= 3 ? names[form] : "unknown";
}

}  // namespace halation::runtime
#endif
