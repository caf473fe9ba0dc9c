#include "safetensors.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace safetensors {
namespace {

using Json = nlohmann::json;

constexpr uint64_t largest_header = 100000000;  // the format's own limit

[[noreturn]] void refuse(const std::string &path, const std::string &message) {
    throw Error(path + ": " + message);
}

[[noreturn]] void refuse(const std::string &path, const std::string &tensor, const std::string &message) {
    refuse(path, "tensor " + in_quotes(tensor) + ": " + message);
}

class OpenFile {
public:
    explicit OpenFile(const std::string &path) : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        if (descriptor_ < 0) refuse(path, std::string("cannot be opened: ") + std::strerror(errno));
    }
    ~OpenFile() { close(descriptor_); }
    OpenFile(const OpenFile &) = delete;
    OpenFile &operator=(const OpenFile &) = delete;

    uint64_t size() const {
        struct stat status;
        if (fstat(descriptor_, &status) != 0) refuse(path_, std::string("cannot be read: ") + std::strerror(errno));
        if (!S_ISREG(status.st_mode)) refuse(path_, "is not a regular file");
        return static_cast<uint64_t>(status.st_size);
    }

    void read(uint64_t offset, void *to, uint64_t count) const {
        auto *next = static_cast<uint8_t *>(to);
        while (count > 0) {
            const ssize_t got = pread(descriptor_, next, count, static_cast<off_t>(offset));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) refuse(path_, std::string("cannot be read: ") + std::strerror(errno));
            if (got == 0) refuse(path_, "became shorter while it was read");
            next += got;
            offset += static_cast<uint64_t>(got);
            count -= static_cast<uint64_t>(got);
        }
    }

private:
    std::string path_;
    int descriptor_;
};

Json parse_header(const std::string &path, const std::string &text) {
    // The JSON library keeps the last of two equal keys; the format allows none.
    std::vector<std::set<std::string>> seen;
    const auto watch = [&](int, Json::parse_event_t event, Json &parsed) {
        if (event == Json::parse_event_t::object_start) seen.emplace_back();
        if (event == Json::parse_event_t::object_end) seen.pop_back();
        if (event == Json::parse_event_t::key && !seen.back().insert(parsed.get<std::string>()).second)
            refuse(path, "the header has two entries named " + in_quotes(parsed.get<std::string>()));
        return true;
    };
    // Deeper nesting than the format's three levels would only exhaust the stack of the parser's destructor.
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.size(); i++) {
        if (in_string && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            in_string = !in_string;
        else if (!in_string && (text[i] == '{' || text[i] == '[') && ++depth > 8)
            refuse(path, "the header is nested too deeply");
        else if (!in_string && (text[i] == '}' || text[i] == ']'))
            depth--;
    }
    try {
        Json header = Json::parse(text, watch);
        if (!header.is_object()) refuse(path, "the header is not a JSON object");
        return header;
    } catch (const Json::exception &) {
        refuse(path, "the header is not valid JSON: not a safetensors file, or a damaged one");
    }
}

std::map<std::string, std::string> parse_metadata(const std::string &path, const Json &entry) {
    std::map<std::string, std::string> metadata;
    if (!entry.is_object()) refuse(path, "__metadata__ in the header is not an object");
    for (const auto &[key, value] : entry.items()) {
        if (!value.is_string()) refuse(path, "metadata " + in_quotes(key) + " is not a string");
        metadata[key] = value.get<std::string>();
    }
    return metadata;
}

struct Entry {
    std::string name;
    Tensor tensor;
    uint64_t begin, end;
};

Type parse_type(const std::string &path, const std::string &name, const Json &value) {
    constexpr Type all[] = {Type::f32, Type::f16, Type::bf16, Type::i32, Type::i64, Type::u8, Type::boolean};
    std::string known;
    for (Type type : all) {
        if (value == safetensors::name(type)) return type;
        known += (known.empty() ? "" : ", ") + std::string(safetensors::name(type));
    }
    const std::string got = value.is_string() ? value.get<std::string>() : "that is not a string";
    refuse(path, name, "dtype " + in_quotes(got) + " is not supported; supported are " + known);
}

Entry parse_entry(const std::string &path, const std::string &name, const Json &value, uint64_t data_size) {
    for (const char *key : {"dtype", "shape", "data_offsets"})
        if (!value.is_object() || !value.contains(key)) refuse(path, name, std::string("its entry in the header has no ") + key);
    if (value.size() != 3) refuse(path, name, "its entry in the header has more than dtype, shape and data_offsets");

    Entry entry{name, {}, 0, 0};
    entry.tensor.type = parse_type(path, name, value["dtype"]);
    const Json &shape = value["shape"], &offsets = value["data_offsets"];
    if (!shape.is_array()) refuse(path, name, "shape is not a list");
    uint64_t size = static_cast<uint64_t>(bytes(entry.tensor.type));
    for (const Json &extent : shape) {
        if (!extent.is_number_unsigned() || extent.get<uint64_t>() > INT64_MAX)
            refuse(path, name, "shape holds something that is not a whole number from 0 up");
        if (__builtin_mul_overflow(size, extent.get<uint64_t>(), &size)) refuse(path, name, "shape is too large");
        entry.tensor.shape.push_back(extent.get<int64_t>());
    }
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
        refuse(path, name, "data_offsets is not a pair of whole numbers from 0 up");
    entry.begin = offsets[0].get<uint64_t>();
    entry.end = offsets[1].get<uint64_t>();
    const std::string range = "[" + std::to_string(entry.begin) + ", " + std::to_string(entry.end) + "]";
    if (entry.begin > entry.end) refuse(path, name, "data_offsets " + range + " run backwards");
    if (entry.end > data_size)
        refuse(path, name,
               "data_offsets " + range + " reach past the end of the file, which holds " + std::to_string(data_size) +
                   " bytes of data (truncated?)");
    if (entry.end - entry.begin != size)
        refuse(path, name,
               "data_offsets " + range + " are " + std::to_string(entry.end - entry.begin) +
                   " bytes where dtype and shape make " + std::to_string(size));
    return entry;
}

// The data is covered exactly once.
void check_layout(const std::string &path, std::vector<Entry> &entries, uint64_t data_size) {
    std::sort(entries.begin(), entries.end(),
              [](const Entry &a, const Entry &b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
    uint64_t end = 0;
    for (size_t i = 0; i < entries.size(); i++) {
        if (entries[i].begin < end)
            refuse(path, entries[i].name, "its data overlaps that of tensor " + in_quotes(entries[i - 1].name));
        if (entries[i].begin > end)
            refuse(path, entries[i].name,
                   "its data begins at byte " + std::to_string(entries[i].begin) + ", which leaves a hole after byte " +
                       std::to_string(end));
        end = entries[i].end;
    }
    if (end != data_size) refuse(path, std::to_string(data_size - end) + " bytes after the last tensor belong to none");
}

}  // namespace

File read(const std::string &path) {
    try {
        const OpenFile input(path);
        const uint64_t size = input.size();
        if (size < 8) refuse(path, "is " + std::to_string(size) + " bytes long: not a safetensors file");
        uint8_t prefix[8];
        input.read(0, prefix, 8);
        uint64_t header_size = 0;
        for (int i = 7; i >= 0; i--) header_size = header_size << 8 | prefix[i];
        if (header_size > largest_header)
            refuse(path, "the header would be " + std::to_string(header_size) +
                             " bytes long, more than the 100000000 that are allowed: not a safetensors file");
        if (header_size > size - 8)
            refuse(path, "the header would be " + std::to_string(header_size) + " bytes long where the file has " +
                             std::to_string(size - 8) + " left: truncated, or not a safetensors file");
        std::string text(header_size, '\0');
        input.read(8, text.data(), header_size);
        const uint64_t data_size = size - 8 - header_size;

        File file;
        std::vector<Entry> entries;
        const Json header = parse_header(path, text);
        for (const auto &[name, value] : header.items()) {
            if (name == "__metadata__")
                file.metadata = parse_metadata(path, value);
            else
                entries.push_back(parse_entry(path, name, value, data_size));
        }
        check_layout(path, entries, data_size);
        for (Entry &entry : entries) {
            entry.tensor.data.resize(entry.end - entry.begin);
            input.read(8 + header_size + entry.begin, entry.tensor.data.data(), entry.tensor.data.size());
            file.tensors[entry.name] = std::move(entry.tensor);
        }
        return file;
    } catch (const std::bad_alloc &) {
        refuse(path, "does not fit into memory");
    }
}

}  // namespace safetensors
