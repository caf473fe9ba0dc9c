// How far a result is from its reference, and how far it may be.
#include "oracle.h"

#include <algorithm>
#include <limits>

namespace oracle {

double error(const Array &x, const Array &reference) {
    const double infinity = std::numeric_limits<double>::infinity();
    if (x.shape != reference.shape || x.values.size() != reference.values.size()) return infinity;
    double difference = 0, norm = 0;
    for (size_t i = 0; i < x.values.size(); i++) {
        const double a = x.values[i], b = reference.values[i];
        if (a == b || (std::isnan(a) && std::isnan(b))) {
            if (std::isfinite(b)) norm += b * b;
            continue;
        }
        if (!std::isfinite(a) || !std::isfinite(b)) return infinity;
        difference += (a - b) * (a - b);
        norm += b * b;
    }
    if (difference == 0) return 0;
    return norm == 0 ? infinity : std::sqrt(difference / norm);
}

namespace {

double allowed(const Array &in_float, const Array &reference) {
    return std::max(1e-5, 4 * error(in_float, reference));
}

}  // namespace

Bounds bound(const Inputs &inputs, const Outputs &reference) {
    const Outputs in_float = run_in_float(inputs);
    return {allowed(in_float.o, reference.o), allowed(in_float.final_state, reference.final_state),
            allowed(in_float.final_normalizer, reference.final_normalizer)};
}

Bounds bound(const Inputs &inputs) {
    return bound(inputs, run(inputs));
}

}  // namespace oracle
