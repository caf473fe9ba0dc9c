#include "demo_figures.h"
#include "demo_results.h"
#include "demo_style.h"
#include "html.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace halation::demo {
namespace {

using cli::escape;

std::string number_cell(const std::string &words) {
    return "<td class='n'>" + words + "</td>";
}
std::string error_cell(double error) {
    return number_cell(std::isnan(error) ? "–" : fmt::format("{:.1e}", error));
}
std::string time_cell(double seconds) {
    return number_cell(std::isnan(seconds) ? "–" : fmt::format("{:.2f}", seconds * 1e6));
}

// A table with a row for every recurrence: cells(entry) are those after its name.
template<typename Cells>
std::string entry_table(const Results &results, const std::string &head, int columns, Cells cells,
                        const std::string &besides = "") {
    std::string out = "<div class='scroll'><table><thead><tr><th>recurrence</th>" + head + "</tr></thead><tbody>\n";
    for (const Entry &entry : results.entries) {
        out += "<tr><td>" + escape(entry.memory->recurrence) + "</td>";
        out +=
            entry.ran() ? cells(entry) : fmt::format("<td class='missing' colspan='{}'>{}</td>", columns, escape(entry.missing));
        out += "</tr>\n";
    }
    return out + besides + "</tbody></table></div>\n";
}

std::string scrolling(const std::string &chart) {
    return "<div class='scroll'>" + chart + "</div>";
}

std::string head(std::initializer_list<const char *> columns) {
    std::string out;
    for (const char *column : columns) out += fmt::format("<th class='n'>{}</th>", column);
    return out;
}

std::string opening(const Results &results) {
    constexpr const char *words = R"html(<h1>Recurrent attention as an associative memory: {file}</h1>
<p class='facts'>{tokens} bytes{cut} · {heads} heads, {dim} key and {dim} value channels, float32 · seed {seed} ·
{processor}, {isa}{threads}</p>
<p>Each recurrence below is used bare, as a memory. It reads the text byte by byte. At every byte it is told which byte
followed the context just before, and asked what follows the context now. The memories are not trained: a context's key
and a byte's value are fixed random unit vectors, so what is measured is how much a memory holds and how well it gives it
back. Only four weights, which make its answers probabilities, are fitted (below). Left out are ssm and hgrn, which take
no keys and queries by head, and bidirectional, which sees the bytes to come.</p>
<pre>write at byte t    key: context that ends before byte t    value: byte t
read at byte t     key: context that ends in byte t        answer: a guess at byte t + 1</pre>
<p>Head 1 has the last byte as its context, head 2 the last two, head 3 the last three. The answer of each head, made a
unit vector, is compared with the value of every byte. The logit of a byte is the sum of these scores, each head with
its own inverse temperature, plus a weighted prior: the logarithm of how often the byte came so far. The four weights of
each recurrence are fitted on the first tenth of the text, which is left out of the score.</p>
)html";
    std::string isa;
    for (const Entry &entry : results.entries) {
        if (entry.ran() && isa.empty()) isa = entry.isa + " kernels, ";
    }
    return fmt::format(words, fmt::arg("file", escape(results.file)), fmt::arg("tokens", results.tokens),
                       fmt::arg("cut", results.cut ? " from the start of the file" : ""), fmt::arg("heads", heads),
                       fmt::arg("dim", dim), fmt::arg("seed", results.seed), fmt::arg("processor", escape(results.processor)),
                       fmt::arg("isa", escape(isa)),
                       fmt::arg("threads", fmt::format("{} thread{}", results.threads, results.threads == 1 ? "" : "s")));
}

std::string prediction(const Results &results) {
    constexpr const char *words = R"html(<h2>What the memories know</h2>
<figure>{figure}<figcaption><span class='swatch b{additive}'></span>additive writes
<span class='swatch b{delta}'></span>delta rule <span class='swatch b{softmax}'></span>softmax over the whole cache</figcaption>
<figcaption>Scored on {scored} predictions{sampled}, the first tenth left out. Byte counts: the prior alone, without any
context. Exact table: everything that followed every context of up to three bytes, counted, the orders blended after
Witten and Bell; it grows with the text, as the cache of softmax does.</figcaption></figure>
)html";
    std::string sampled;
    if (results.scored_every > 1) {
        sampled = fmt::format(" (one block of {} bytes in {}, since softmax reads its whole cache for each)", block,
                              results.scored_every);
    }
    const auto cells = [](const Score &score, const std::string &rule) {
        return number_cell(fmt::format("{:.1f} %", 100 * score.accuracy)) + number_cell(fmt::format("{:.3f}", score.bits)) +
               "<td class='list'>" + escape(rule) + "</td>";
    };
    const std::string besides = "<tr class='besides'><td>byte counts</td>" +
                                cells(results.byte_counts, "how often each byte came so far") +
                                "</tr>\n<tr class='besides'><td>exact table</td>" +
                                cells(results.context_counts, "all that followed each context of up to three bytes") + "</tr>\n";
    return fmt::format(words, fmt::arg("figure", scrolling(prediction_figure(results))), fmt::arg("additive", +additive_colour),
                       fmt::arg("delta", +delta_colour), fmt::arg("softmax", +softmax_colour), fmt::arg("scored", results.scored),
                       fmt::arg("sampled", sampled)) +
           entry_table(
               results, head({"next byte right", "bits per byte"}) + "<th class='list'>rule</th>", 3,
               [&](const Entry &entry) { return cells(entry.score, entry.memory->rule); }, besides);
}

// Why forms that the table compares are not there: mostly because the recurrence itself has none.
std::string missing_forms(const Results &results) {
    std::string words;
    for (const Entry &entry : results.entries) {
        if (!entry.ran()) continue;
        const Agreement &agreed = entry.agreement;
        const bool all = !std::isnan(agreed.recurrent_to_chunkwise) && !std::isnan(agreed.recurrent_to_parallel);
        const halation_row &row = *find_row(entry.memory->recurrence);
        bool explained = all;
        for (const auto &[form, name] :
             {std::pair{HALATION_FORM_RECURRENT, "recurrent"}, std::pair{HALATION_FORM_CHUNKWISE, "chunkwise"},
              std::pair{HALATION_FORM_PARALLEL, "parallel"}}) {
            if (!row.refused[form]) continue;
            words += fmt::format("{} has no {} form: {}. ", row.name, name, escape(row.refused[form]));
            explained = true;
        }
        if (!explained) words += fmt::format("This build or machine has not all forms of {}. ", row.name);
    }
    return words;
}

std::string agreement(const Results &results) {
    constexpr const char *words = R"html(<h2>How far the forms agree</h2>
<p>The same recurrence can be computed token by token (recurrent), chunk by chunk with the state carried (chunkwise), or
over all tokens at once (parallel, quadratic work). The outputs should be the same up to rounding. Shown is
||x − y|| / ||y|| over all outputs: on the whole text where it says so, otherwise on the first {} bytes. A decay close
to 1 multiplies its own rounding up over thousands of tokens, so on a long text the recurrences that forget differ by
more, up to some 1e-4 at 65536 tokens.</p>
)html";
    return fmt::format(words, results.parallel_context()) +
           entry_table(results,
                       head({"recurrent / chunkwise,<br>whole text", "recurrent / chunkwise", "recurrent / parallel",
                             "chunkwise / parallel"}),
                       4,
                       [](const Entry &entry) {
                           return error_cell(entry.whole_text_difference) + error_cell(entry.agreement.recurrent_to_chunkwise) +
                                  error_cell(entry.agreement.recurrent_to_parallel) +
                                  error_cell(entry.agreement.chunkwise_to_parallel);
                       }) +
           fmt::format("<p class='facts'>–: one of the two forms is not there. {}</p>\n", missing_forms(results));
}

std::string times(const Results &results) {
    constexpr const char *words = R"html(<h2>Time and memory a token</h2>
<p>Prefill takes in {} tokens in one call, chunkwise (softmax: parallel). Decode takes one token in a call, after as
many, in the recurrent form. Times are medians, for one token with all {} heads. State and KV cache are what the
recurrence and what softmax must keep between tokens, after the whole text.</p>
)html";
    constexpr const char *caption =
        R"html(<figcaption>The state has one size whatever the length of the text; a KV cache
grows by a key and a value for each head and token. From sizes, not measured.</figcaption>)html";
    const double cache = static_cast<double>(results.cache_bytes(results.tokens));
    std::string out = fmt::format(words, results.timed_context(), heads);
    out += entry_table(
        results,
        head({"prefill,<br>µs a token", "decode,<br>µs a token", "state", "KV cache<br>for the same text", "cache / state"}), 5,
        [&](const Entry &entry) {
            const double state = static_cast<double>(entry.timing.state_bytes);
            return time_cell(entry.timing.prefill) + time_cell(entry.timing.decode) +
                   number_cell(state > 0 ? bytes_text(state) : "–") + number_cell(bytes_text(cache)) +
                   number_cell(state > 0 ? fmt::format("{:.0f}", cache / state) : "–");
        });
    const auto has_state = [](const Entry &entry) { return entry.ran() && entry.timing.state_bytes > 0; };
    const auto first = std::find_if(results.entries.begin(), results.entries.end(), has_state);
    if (first == results.entries.end()) return out;
    return out + "<figure>" + scrolling(memory_figure(results, *first)) + caption + "</figure>\n";
}

std::string cost(const Results &results) {
    constexpr const char *words = R"html(<h2>Cost against context length</h2>
<p>Measured. A memory of fixed size takes the same work for every token; softmax looks at all tokens before, so its cost
for a token grows with the context. Where the curve of linear rises at the end of prefill, what a call reads and writes,
{bytes} a token, has outgrown the caches of the processor. Decode does not show that.</p>
<figure class='pair'>{figures}<figcaption>{found}Medians, all heads, at {timed} tokens those of the table. Short calls
are dominated by what a call costs by itself.</figcaption></figure>
)html";
    std::string figures, found;
    for (const auto &[name, measured] : {std::pair{"prefill", &results.prefill}, std::pair{"decode", &results.decode}}) {
        if (measured->linear.empty()) continue;
        figures += scrolling(cost_figure(name, *measured));
        found += fmt::format("In {}, {}. ", name, crossover_words(*measured));
    }
    if (figures.empty()) return "";
    // q and o of every head, k being the q of the token before, and one v for all heads.
    constexpr double bytes = (2 * heads + 1) * dim * sizeof(float);
    return fmt::format(words, fmt::arg("figures", figures), fmt::arg("found", found), fmt::arg("bytes", bytes_text(bytes)),
                       fmt::arg("timed", results.timed_context()));
}

std::string norms(const Results &results) {
    constexpr const char *words = R"html(<h2>Size of the state over time</h2>
<p>A memory that keeps all grows without end. With a constant decay, writing and forgetting come into balance. A gate
that forgets at blank lines follows the paragraphs of the text. The delta rule stays small by itself: it writes only the
part of a value that it does not give back already.</p>
<figure>{}<figcaption>Root of the sum of squares over the states of all heads, every {} bytes.</figcaption></figure>
)html";
    const std::string figure = norm_figure(results);
    return figure.empty() ? "" : fmt::format(words, scrolling(figure), block);
}

std::string constants(const Results &results) {
    constexpr const char *words = R"html(<h2>Constants and fitted weights</h2>
<p>No gate is learned. Except where listed, the output scale is 1 and keys and queries are unit vectors. The constants
were chosen by hand on the sample text of the repository and are the same for every file; logarithms of decays are by
token. The weights, an inverse temperature for each head and one for the prior, are the only fitted numbers.</p>
)html";
    const auto cells = [](const Entry &entry) {
        std::string weights;
        for (double weight : entry.score.weights) weights += number_cell(fmt::format("{:.2f}", weight));
        weights += number_cell(fmt::format("{:.2f}", entry.score.prior_weight));
        std::string kernel;  // may be broken at its underscores
        for (char c : escape(entry.kernel)) kernel += c == '_' ? "_<wbr>" : std::string(1, c);
        return "<td class='wide'>" + escape(entry.memory->listed()) + "</td>" + weights + "<td class='list'><code>" + kernel +
               "</code></td>";
    };
    return words +
           entry_table(results,
                       "<th>constants</th>" + head({"head 1", "head 2", "head 3", "prior"}) + "<th class='list'>kernel</th>", 6,
                       cells);
}

}  // namespace

std::string report(const Results &results) {
    constexpr const char *words = R"html(<!DOCTYPE html>
<html lang='en'>
<head>
<meta charset='utf-8'>
<meta name='viewport' content='width=device-width, initial-scale=1'>
<title>Halation: {file}</title>
<style>{style}</style>
</head>
<body>
{body}</body>
</html>
)html";
    return fmt::format(words, fmt::arg("file", escape(results.file)), fmt::arg("style", report_style),
                       fmt::arg("body", opening(results) + prediction(results) + agreement(results) + times(results) +
                                            cost(results) + norms(results) + constants(results)));
}

}  // namespace halation::demo
