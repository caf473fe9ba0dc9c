#include "scan.h"

#include "carry.h"
#include "guard.h"
#include "masks.h"

namespace halation {

void resolve_markers(Halide::Pipeline pipeline, const Scan &scan) {
    CarryNames names;
    names.state_before = scan.state_before.name();
    names.state_after = scan.state_after.name();
    names.final_state_copy = scan.final_state_copy.name();
    names.copies[scan.final_state_copy.name()] = scan.final_state.name();
    names.chunk_loop = scan.t.name();
    pipeline.add_custom_lowering_pass(make_guard_pass());
    pipeline.add_custom_lowering_pass(make_carry_pass(names));
    pipeline.add_custom_lowering_pass(make_masks_pass());
}

}  // namespace halation
