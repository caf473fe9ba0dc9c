// halation check: every form on every ISA of this machine, against the oracle and against what the files expect.
#include "commands.h"
#include "compute.h"
#include "reference.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <string_view>

namespace halation::cli {
namespace {

struct CheckOptions {
    std::vector<std::string> files;
    KernelOptions kernel;
    double tolerance = std::nan("");
};

class Check {
public:
    explicit Check(const CheckOptions &options) : options_(options), context_(options.kernel.threads) {
        context_.add_kernels(*halation_kernels());
        try {
            open_device(context_, options.kernel);
        } catch (const halation::Error &error) {
            if (error.status() != HALATION_UNSUPPORTED) throw Error(error.what());  // else every file is told why
        }
        for (const std::string &file : options.files) width_ = std::max(width_, file.size());
    }

    void all() {
        fmt::print("Errors are ||x - ref|| / ||ref|| over a whole tensor, then what is allowed; ref is the plain loop in "
                   "double,\nor the file's own tensor where it says expect.\n");
        for (const std::string &file : options_.files) {
            try {
                check_file(file);
            } catch (const Error &error) {
                complain(error.what());
            } catch (const safetensors::Error &error) {
                complain(error.what());
            } catch (const std::invalid_argument &error) {  // the oracle's
                complain(fmt::format("{}: {}", file, error.what()));
            }
        }
        fmt::print("{} right, {} wrong, {} refused, {} skipped", right_, wrong_, refused_, skipped_);
        if (bad_files_) fmt::print(", {} not checked", bad_files_ == 1 ? "1 file" : fmt::format("{} files", bad_files_));
        fmt::print("\n");
        if (wrong_ || bad_files_) throw Failed();
    }

private:
    void complain(const std::string &message) {
        std::fflush(stdout);
        fmt::print(stderr, "halation: {}\n", message);
        bad_files_++;
    }

    void check_file(const std::string &path) {
        const ProblemFile file = read_problem(path, "", options_.kernel.heads);
        const std::vector<Reference> references = cli::references(file, options_.tolerance);
        const Refusal refused = refusal(context_, problem_of(file, options_.kernel));
        if (refused.status == HALATION_INVALID_ARGUMENT)  // of no form, and no fault of a kernel
            return complain(fmt::format("{}: {}", path, refused.reason));
        if (!options_.kernel.isa.empty() && options_.kernel.form.empty())  // one reason for all forms is said once
            if (refused.status == HALATION_UNSUPPORTED)
                return complain(fmt::format("{}: nothing was checked: {}", path, refused.reason));
        const int checked = right_ + wrong_, skipped = skipped_;
        std::string reason, of_no_kernel;
        for (const halation_form form : forms()) {
            if (const char *refused = file.row->refused[form]) {
                line("refused", file, form, "-", refused);
                refused_++;
                continue;
            }
            // That of a form which has kernels says more than that another has none.
            std::string &skipped_for = has_kernels(file, form) ? reason : of_no_kernel;
            for (const std::string &isa : isas(file)) {
                const std::string found = check_kernel(file, form, isa, references);
                if (skipped_for.empty()) skipped_for = found;
            }
        }
        if (right_ + wrong_ == checked && skipped_ > skipped)
            complain(fmt::format("{}: nothing was checked: {}", path, reason.empty() ? of_no_kernel : reason));
    }

    bool has_kernels(const ProblemFile &file, halation_form form) const {
        const halation_kernel_table *table = halation_kernels();
        return std::any_of(table->kernels, table->kernels + table->kernel_count, [&](const halation_kernel &kernel) {
            return kernel.recurrence == std::string_view(file.row->name) && kernel.backend == options_.kernel.backend &&
                   kernel.form == form;
        });
    }

    std::vector<halation_form> forms() const {
        if (!options_.kernel.form.empty()) return {form_named(options_.kernel.form)};
        return {HALATION_FORM_RECURRENT, HALATION_FORM_CHUNKWISE, HALATION_FORM_PARALLEL};
    }

    // Those that kernels of the recurrence exist for. If there is none, one entry that gets the runtime's reason.
    std::vector<std::string> isas(const ProblemFile &file) const {
        if (!options_.kernel.isa.empty()) return {options_.kernel.isa};
        std::vector<std::string> all;
        const halation_kernel_table *table = halation_kernels();
        for (int i = 0; i < table->kernel_count; i++) {
            const halation_kernel &kernel = table->kernels[i];
            if (std::strcmp(kernel.recurrence, file.row->name) || kernel.backend != options_.kernel.backend) continue;
            if (std::find(all.begin(), all.end(), kernel.isa) == all.end()) all.push_back(kernel.isa);
        }
        if (all.empty()) all.push_back("");
        return all;
    }

    // Returns why the kernel was skipped, or nothing.
    std::string check_kernel(const ProblemFile &file, halation_form form, const std::string &isa,
                             const std::vector<Reference> &references) {
        KernelOptions options = options_.kernel;
        options.form = name_of(form);
        options.isa = isa;
        const Problem problem = problem_of(file, options);
        const halation_status status = halation_can_run(context_.get(), &problem, nullptr);
        if (status != HALATION_OK) {
            const std::string reason = halation_last_message();
            if (status == HALATION_UNSUPPORTED) return skip(file, form, isa, reason);
            line("FAIL", file, form, isa, reason);
            wrong_++;
            return "";
        }
        bool good = true;
        std::string found;
        try {
            const Results results = compute(context_, file, options);
            for (const Reference &reference : references) {
                const double error = error_of(results.tensors.at(reference.output), reference);
                const bool close = error <= reference.bound && std::isfinite(reference.bound);
                found += fmt::format("{}{}{} {:.1e}/{:.1e}{}", found.empty() ? "" : "  ", reference.expected ? "expect." : "",
                                     reference.output, error, reference.bound, close ? "" : "!");
                if (!std::isfinite(reference.bound)) found += " (the plain loop in float leaves the range of float)";
                good = good && close;
            }
        } catch (const halation::Error &error) {
            if (error.status() == HALATION_UNSUPPORTED) return skip(file, form, isa, error.what());
            good = false;
            found = error.what();
        }
        line(good ? "OK" : "FAIL", file, form, isa, found);
        (good ? right_ : wrong_)++;
        return "";
    }

    std::string skip(const ProblemFile &file, halation_form form, const std::string &isa, const std::string &reason) {
        line("skipped", file, form, isa, reason);
        skipped_++;
        return reason;
    }

    void line(const char *verdict, const ProblemFile &file, halation_form form, const std::string &isa,
              const std::string &text) const {
        const std::string &where = options_.kernel.backend == "cpu" ? isa : options_.kernel.backend;
        fmt::print("{:<7}  {:<{}}  {:<9}  {:<6}  {:<4}  {}\n", verdict, file.path, width_, name_of(form),
                   where.empty() ? "-" : where, safetensors::name(file.type), text);
    }

    const CheckOptions &options_;
    Context context_;
    size_t width_ = 0;
    int right_ = 0, wrong_ = 0, refused_ = 0, skipped_ = 0, bad_files_ = 0;
};

}  // namespace

void add_check(CLI::App &app) {
    auto options = std::make_shared<CheckOptions>();
    CLI::App *command = app.add_subcommand("check", "hold every form of a recurrence against the plain loop in double");
    command->add_option("FILE", options->files, "safetensors files as 'halation run' takes them, with\nmetadata 'recurrence'")
        ->required()
        ->option_text("...");
    add_kernel_options(*command, options->kernel,
                       {"auto: by each sequence's length (default: all but auto)", "all that\nthis machine has",
                        "the file's metadata,\nelse grouped"});
    add_backend_options(*command, options->kernel);
    add_threads_option(*command, options->kernel.threads);
    command->add_option("--tolerance", options->tolerance, "largest error allowed, instead of the bounds below")
        ->check(CLI::Validator(
            [](std::string &value) {
                char *end = nullptr;
                const double number = std::strtod(value.c_str(), &end);
                const bool good = !value.empty() && !*end && std::isfinite(number) && number >= 0;
                return good ? std::string() : "'" + value + "' is not a finite number from 0 up";
            },
            ""))
        ->option_text("X");
    command->footer(
        "Each line is one file, form and instruction set. The error of o, final_state and final_normalizer is taken against a\n"
        "plain loop in double on the file's inputs, and against expect.o, expect.final_state and expect.final_normalizer where\n"
        "the file has them.\n\n"
        "Allowed is max(1e-5, 4 times the error of the same plain loop in float). An o in F16 or BF16 is allowed its own\n"
        "rounding besides: 2^-11 (and 2^-25 for each value below F16's normal range) or 2^-8. The state is F32 or, where\n"
        "initial_state is so, BF16, which is allowed 2^-8 too.\n\n"
        "OK: within what is allowed. FAIL: not; the number that is too large has a '!'. refused: the recurrence has no such\n"
        "form. skipped: no kernel of this build, or not on this machine. Exit code 0 if nothing failed and every file could\n"
        "be checked.\n\n"
        "Examples:\n"
        "  halation check *.safetensors\n"
        "  halation check gla.safetensors --form chunkwise --isa avx2\n"
        "  halation check mine.safetensors --tolerance 1e-4");
    command->callback([options] {
        refuse_misfits(options->kernel);
        Check(*options).all();
    });
}

}  // namespace halation::cli
