#include "scan_chunk.h"

#include "carry.h"
#include "guard.h"
#include "math.h"

#include <algorithm>

namespace halation {

using namespace Halide;

namespace {

bool has(const RowInput &input, char letter) {
    return input.dims.find(letter) != std::string::npos;
}

class ScanChunkBuilder {
public:
    ScanChunkBuilder(const ScanRow &row, const ScanChunkInputs &in) : row_(row), in_(in) {}

    ScanChunk build() {
        m_.chunk = in_.chunk;
        m_.channels = in_.channels;
        m_.sequences = in_.sequences;
        m_.rows = one_element() ? 1 : in_.rows;
        m_.groups = one_element() ? Expr(1) : Internal::simplify((in_.elements + m_.rows - 1) / m_.rows);
        token_inputs();
        scan();
        outputs();
        final_state();
        return m_;
    }

private:
    const ScanRow &row_;
    const ScanChunkInputs &in_;
    ScanChunk m_;
    std::vector<std::string> of_channel_, of_element_, of_constants_;  // the inputs in the tuples

    bool one_element() const { return !in_.elements.defined(); }
    Expr element(const Expr &r) const { return m_.g * m_.rows + r; }
    Expr real_element(const Expr &n) const { return one_element() ? Internal::const_true() : likely(n < in_.elements); }
    Expr token(const Expr &i) const { return m_.c * m_.chunk + i; }

    // An input at channel v, element n and token t, as far as it has these; zero beyond the channels and elements.
    Expr loaded(const RowInput &input, const Expr &n, const Expr &t) const {
        std::vector<Expr> point;
        Expr inside = Internal::const_true();
        for (const char letter : kernel_dims(input.dims)) {
            if (letter == 'V') {
                point.push_back(within(m_.v, in_.channels));
                inside = inside && likely(m_.v < in_.channels);
            } else if (letter == 'K') {
                point.push_back(within(n, in_.elements));
                inside = inside && real_element(n);
            } else if (letter == 'T') {
                point.push_back(min(t, in_.tokens - 1));
            } else {
                throw CompileError("input '" + input.name + "' of a scan has dims " + input.dims +
                                   "; the letters are B, T, K, V");
            }
        }
        if (has(input, 'B')) point.push_back(m_.h);
        return float_of_bits(in_.types.at(input.name), guarded(Internal::simplify(inside), in_.tensors.at(input.name)(point)));
    }
    Expr scalar(const std::string &name) const {
        const auto found = in_.scalars.find(name);
        if (found == in_.scalars.end()) throw CompileError("a scan uses '" + name + "', which is none of its inputs");
        return found->second;
    }

    // The inputs as they lie in memory.
    Token token_loaded(const Expr &i) const {
        return Token([this, i](const std::string &name) -> Expr {
            for (const RowInput &input : in_.inputs)
                if (input.name == name) return loaded(input, 0, token(i));
            return scalar(name);
        });
    }
    // The same for element r of group g, from where a chunk keeps them.
    Token token_kept(const Expr &r, const Expr &i) const {
        return Token([this, r, i](const std::string &name) -> Expr {
            const auto place = [&](const std::vector<std::string> &names) {
                return static_cast<int>(std::find(names.begin(), names.end(), name) - names.begin());
            };
            if (const int at = place(of_channel_); at < static_cast<int>(of_channel_.size()))
                return m_.channel_inputs(m_.v, i, m_.c, m_.h)[at];
            if (const int at = place(of_element_); at < static_cast<int>(of_element_.size()))
                return m_.element_inputs(r, i, m_.g, m_.c, m_.h)[at];
            if (const int at = place(of_constants_); at < static_cast<int>(of_constants_.size()))
                return m_.channel_constants[at](m_.v);
            for (const RowInput &input : in_.inputs)
                if (input.name == name) return m_.rates(m_.v, r, m_.g);
            return scalar(name);
        });
    }

    void token_inputs() {
        const Var &v = m_.v, &r = m_.r, &g = m_.g, &i = m_.i, &c = m_.c, &h = m_.h;
        m_.channel_inputs = Func("channel_inputs");
        if (one_element()) {
            m_.channel_inputs(v, i, c, h) = Tuple(row_.decay(token_loaded(i)), row_.write(token_loaded(i)));
            return;
        }
        std::vector<Expr> channel, element_values;
        for (const RowInput &input : in_.inputs) {
            if (has(input, 'T')) {
                (has(input, 'K') ? element_values : channel).push_back(loaded(input, element(r), token(i)));
                (has(input, 'K') ? of_element_ : of_channel_).push_back(input.name);
            } else if (has(input, 'K')) {
                m_.rates = Func("rates");
                m_.rates(v, r, g) = loaded(input, element(r), 0);
            } else {
                Func constant("channel_constant_" + input.name);
                constant(v) = loaded(input, 0, 0);
                m_.channel_constants.push_back(constant);
                of_constants_.push_back(input.name);
            }
        }
        m_.channel_inputs(v, i, c, h) = Tuple(channel);
        m_.element_inputs = Func("element_inputs");
        m_.element_inputs(r, i, g, c, h) = Tuple(element_values);
    }

    Expr initial_state() const {
        const Expr channel = within(m_.v, in_.channels), n = element(m_.r);
        Expr inside = likely(m_.v < in_.channels) && in_.has_initial_state;
        if (one_element()) return guarded(inside, in_.initial_state(channel, m_.h));
        return guarded(inside && real_element(n), in_.initial_state(channel, within(n, in_.elements), m_.h));
    }

    void scan() {
        const Var &v = m_.v, &r = m_.r, &g = m_.g, &i = m_.i, &c = m_.c, &h = m_.h;
        m_.state_before = Func("state_before");
        m_.state_before(v, r, g, c, h) = mark_state_before(initial_state(), v, element(r));

        m_.within = RDom(0, m_.rows, 0, m_.chunk, "within");
        const RVar er = m_.within.x, ti = m_.within.y;
        m_.scanned = Func("scanned");
        m_.scanned(v, r, i, g, c, h) = Tuple(undef<float>(), undef<float>());
        const Expr before = select(ti == 0, m_.state_before(v, er, g, c, h), m_.scanned(v, er, max(ti - 1, 0), g, c, h)[0]);
        const Expr kept_decay = m_.channel_inputs(v, ti, c, h)[0], kept_write = m_.channel_inputs(v, ti, c, h)[1];
        const Token kept = token_kept(er, ti);
        if (!one_element()) {
            m_.decays = Func("decays");
            m_.decays(v, r, i, g, c, h) = row_.decay(token_kept(r, i));
        }
        const Expr decay = one_element() ? kept_decay : m_.decays(v, er, ti, g, c, h),
                   write = one_element() ? kept_write : row_.write(kept);
        // Beyond the last token the state stays as it is, to the bit.
        const Expr after = select(token(ti) < in_.tokens && real_element(element(er)), decay * before + write, before);
        const Expr read_before = select(er == 0, 0.0f, m_.scanned(v, max(er - 1, 0), ti, g, c, h)[1]);
        m_.scanned(v, er, ti, g, c, h) = Tuple(after, read_before + row_.read(kept, after));
    }

    void outputs() {
        const Var &v = m_.v, &g = m_.g, &i = m_.i, &c = m_.c, &h = m_.h;
        m_.group_reads = Func("group_reads");
        m_.group_reads(v, i, g, c, h) = m_.scanned(v, m_.rows - 1, i, g, c, h)[1];
        const RDom over_groups(0, m_.groups, "over_groups");
        m_.over_groups = over_groups;
        m_.reads = Func("reads");
        m_.reads(v, i, c, h) += m_.group_reads(v, i, over_groups, c, h);
        m_.outputs = Func("outputs");
        m_.outputs(v, i, c, h) = row_.output(token_kept(0, i), m_.reads(v, i, c, h));
    }

    void final_state() {
        const Var &v = m_.v, &r = m_.r, &g = m_.g, &c = m_.c, &h = m_.h, &t = m_.t;
        const Expr n = element(r);
        m_.state_after = Func("state_after");
        m_.state_after(v, r, g, c, h) = mark_state_after(m_.scanned(v, r, m_.chunk - 1, g, c, h)[0], v, n, {});
        // A sequence without tokens goes through one, too: its state stays as it is in any.
        const Expr last = max(last_chunk_of(in_.tokens, m_.chunk), 0);
        const Expr wanted = v < in_.channels && real_element(n) && in_.wants_final_state && mark_last_chunk(c, last);
        m_.final_state_copy = Func("final_state_copy");
        m_.final_state_copy(v, r, g, c, h) =
            mark_copy_out(m_.state_after(v, r, g, c, h),
                          one_element() ? std::vector<Expr>{v, in_.final_row} : std::vector<Expr>{v, n, in_.final_row}, wanted);
        const Expr at = t / m_.chunk;
        std::vector<Expr> copies = {m_.final_state_copy(v, 0, 0, at, h)};
        if (!one_element()) copies.push_back(m_.final_state_copy(v, m_.rows - 1, m_.groups - 1, at, h));
        m_.output = Func("output");
        m_.output(v, h, t) = in_order(m_.outputs(v, t % m_.chunk, at, h), copies);
    }
};

}  // namespace

ScanChunk make_scan_chunk(const ScanRow &row, const ScanChunkInputs &inputs) {
    return ScanChunkBuilder(row, inputs).build();
}

}  // namespace halation
