// Barriers of a block of threads that separate nothing. Halide puts one after everything that is computed in shared memory,
// whoever reads it and when; between two of them that are needed all may be reckoned without waiting.
#ifndef HALATION_GENERATORS_NEEDLESS_BARRIERS_H
#define HALATION_GENERATORS_NEEDLESS_BARRIERS_H

#include <Halide.h>

namespace halation {

// Goes through the code of every block whose number of threads is known as its threads do, all at once (lockstep.h), and notes
// which thread touches which element of what they share. A barrier stays if without it one thread could write what another reads
// or writes on its other side. What cannot be followed (an index that depends on sizes known at run time, say) counts as touching
// all elements, and loops with barriers as going round any number of times; a block of unknown size stays as it is. Memory that
// the block only reads or only writes is not exchanged among its threads; where a state is read and written in place, under two
// names, each thread has the same elements of both. Comes after all passes that move loads and stores.
Halide::Internal::IRMutator *make_needless_barriers_pass();

}  // namespace halation
#endif
