"""PyTorch's tensors: bfloat16, layouts, refusals. Skipped where there is no PyTorch."""

import gc
import unittest
import weakref

import numpy as np

import halation
import loops
from inputs import doubles, draw

try:
    import torch
except ImportError:
    torch = None


@unittest.skipIf(torch is None, "this Python has no torch")
class Torch(unittest.TestCase):
    def tensors(self, recurrence="gated_delta", type_name="float32", gates="float32"):
        arrays = draw(recurrence)
        types = {name: getattr(torch, gates if name in ("g", "beta") else type_name) for name in arrays}
        return {name: torch.from_numpy(x).to(types[name]) for name, x in arrays.items()}

    def wanted(self, tensors):
        return loops.matrix("gated_delta", **doubles({name: x.float().numpy() for name, x in tensors.items()}))

    def test_types(self):
        for type_name, gates, tolerance in [("float32", "float32", 2e-5), ("float16", "float16", 2e-3),
                                            ("bfloat16", "float32", 2e-2), ("bfloat16", "bfloat16", 2e-2)]:
            with self.subTest(type_name):
                tensors = self.tensors("gated_delta", type_name, gates)
                o, state = halation.run("gated_delta", **tensors)
                self.assertEqual((o.dtype, state.dtype), (getattr(torch, type_name), torch.float32))
                wanted_o, wanted_state = self.wanted(tensors)
                self.assertLess(np.abs(o.float().numpy() - wanted_o).max(), tolerance * (1 + np.abs(wanted_o).max()))
                self.assertLess(np.abs(state.numpy() - wanted_state).max(), 2e-5 * (1 + np.abs(wanted_state).max()))

    def test_layouts(self):
        tensors = self.tensors(type_name="bfloat16")
        wanted, _ = halation.run("gated_delta", **tensors)
        heads_first = {name: x.transpose(1, 2).contiguous().transpose(1, 2) for name, x in tensors.items()}
        self.assertFalse(heads_first["q"].is_contiguous())
        self.assertTrue(torch.equal(halation.run("gated_delta", **heads_first)[0], wanted))
        o = torch.zeros(2, 4, 20, 21, dtype=torch.bfloat16).permute(0, 3, 1, 2)
        result, _ = halation.run("gated_delta", **tensors, o=o)
        self.assertIs(result, o)
        self.assertTrue(torch.equal(o, wanted))

    def test_bfloat16_states(self):
        tensors = self.tensors()
        _, exact = halation.run("gated_delta", **tensors)
        _, rounded = halation.run("gated_delta", **tensors, state_type="bfloat16")
        self.assertTrue(torch.equal(rounded, exact.to(torch.bfloat16)))
        pool = torch.zeros(6, 4, 24, 20, dtype=torch.bfloat16)
        slots = torch.tensor([5, 1])
        _, state = halation.run("gated_delta", **tensors, final_state=pool, write_slots=slots)
        self.assertIs(state, pool)
        self.assertTrue(torch.equal(pool[slots], rounded))
        halation.run("gated_delta", **tensors, initial_state=pool, read_slots=slots, final_state=pool, write_slots=slots,
                     has_initial_state=torch.tensor([0, 0], dtype=torch.uint8))
        self.assertTrue(torch.equal(pool[slots], rounded))

    def test_refusals(self):
        tensors = self.tensors()
        with self.assertRaisesRegex(halation.InvalidArgument, "^q: .*detach"):
            halation.run("gated_delta", **{**tensors, "q": tensors["q"].clone().requires_grad_()})
        with self.assertRaisesRegex(halation.InvalidArgument, "^type: got 'float64'"):
            halation.run("gated_delta", **{**tensors, "q": tensors["q"].double()})
        with self.assertRaisesRegex(halation.Error, "^q: "):
            halation.run("gated_delta", **{**tensors, "q": tensors["q"].to("meta")})

    def test_both_libraries_in_one_call(self):
        tensors = self.tensors()
        mixed = {**tensors, "v": tensors["v"].numpy()}
        self.assertTrue(torch.equal(halation.run("gated_delta", **mixed)[0], halation.run("gated_delta", **tensors)[0]))

    def test_no_reference_is_kept(self):
        tensors = self.tensors()
        alive = [weakref.ref(x) for x in tensors.values()] + [weakref.ref(x) for x in halation.run("gated_delta", **tensors)]
        del tensors
        gc.collect()
        self.assertEqual([x() for x in alive], [None] * len(alive))


if __name__ == "__main__":
    unittest.main()
