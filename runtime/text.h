// Message text of a bounded length, built without the heap.
#ifndef HALATION_RUNTIME_TEXT_H
#define HALATION_RUNTIME_TEXT_H

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace halation::runtime {

// Appends until it is full; what does not fit is cut off.
template<size_t Capacity> class Text {
public:
    Text() { text_[0] = 0; }

    __attribute__((format(printf, 2, 3))) Text &add(const char *format, ...) {
        va_list values;
        va_start(values, format);
        const int wanted = vsnprintf(text_ + length_, Capacity - length_, format, values);
        va_end(values);
        if (wanted > 0) {
            const size_t room = Capacity - 1 - length_;
            length_ += static_cast<size_t>(wanted) < room ? static_cast<size_t>(wanted) : room;
        }
        return *this;
    }

    // Adds an item of a list: "a, b, c".
    Text &item(const char *word, const char *separator = ", ") { return add("%s%s", length_ ? separator : "", word); }

    const char *c_str() const { return text_; }
    bool empty() const { return length_ == 0; }

private:
    size_t length_ = 0;
    char text_[Capacity];
};

template<size_t Capacity> void copy_text(char (&to)[Capacity], const char *from) {
    const size_t length = strlen(from) < Capacity ? strlen(from) : Capacity - 1;
    memcpy(to, from, length);
    to[length] = 0;
}

}  // namespace halation::runtime
#endif
