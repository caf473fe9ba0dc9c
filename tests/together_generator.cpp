// A user's own Halide generator, whose library brings Halide's runtime into the program.
#include <Halide.h>

class Doubled : public Halide::Generator<Doubled> {
public:
    Input<Buffer<float, 1>> input{"input"};
    Output<Buffer<float, 1>> output{"output"};

    void generate() {
        Halide::Var i;
        output(i) = 2 * input(i);
        if (using_autoscheduler()) return;
        output.parallel(i, 16);
    }
};

HALIDE_REGISTER_GENERATOR(Doubled, doubled)
