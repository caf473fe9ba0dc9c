"""Every recurrence against its plain loop, in all layouts that NumPy can make."""

import unittest

import numpy as np

import halation
import loops
from inputs import doubles, draw

MATRIX = ["linear", "retention", "gated", "gla", "gla_outer", "rwkv6", "delta", "gated_delta", "kda", "rwkv7"]


def expected(recurrence, arrays, state=None):
    arrays = doubles(arrays)
    if recurrence in MATRIX:
        return loops.matrix(recurrence, **arrays, state=state)
    if recurrence in ("bidirectional", "softmax"):
        return getattr(loops, recurrence)(**arrays), None
    return getattr(loops, recurrence)(**arrays, state=state)


class Results(unittest.TestCase):
    def near(self, actual, wanted, tolerance=2e-5):
        if isinstance(wanted, tuple):
            for one, other in zip(actual, wanted, strict=True):
                self.near(one, other, tolerance)
        elif wanted is None:
            self.assertIsNone(actual)
        else:
            self.assertEqual(actual.shape, wanted.shape)
            self.assertLess(np.abs(np.asarray(actual, np.float64) - wanted).max(), tolerance * (1 + np.abs(wanted).max()))

    def test_every_recurrence(self):
        names = list(halation.recurrences())
        self.assertGreaterEqual(len(names), 15)
        for name in names:
            with self.subTest(name):
                arrays = draw(name)
                wanted = expected(name, arrays)
                for form in ("auto", *halation.recurrences()[name].forms):
                    o, state = halation.run(name, **arrays, form=form)
                    self.assertEqual(o.dtype, np.float32)
                    self.near(o, wanted[0])
                    self.near(state, wanted[1])

    def test_the_final_state_goes_on(self):
        for name, row in halation.recurrences().items():
            if not row.state_dims:
                continue
            with self.subTest(name):
                arrays = draw(name)
                wanted = expected(name, arrays)
                state, outputs = None, []
                for tokens in (slice(0, 13), slice(13, 14), slice(14, None)):
                    part = {n: x[:, tokens] if "T" in row.inputs[n].dims else x for n, x in arrays.items()}
                    o, state = halation.run(name, **part, initial_state=state)
                    outputs.append(o)
                self.near(np.concatenate(outputs, 1), wanted[0])
                self.near(state, wanted[1])

    def test_what_is_optional_may_be_left_out(self):
        arrays = draw("ssm")
        del arrays["D"], arrays["z"]
        self.near(halation.run("ssm", **arrays)[0], loops.ssm(**doubles(arrays))[0])
        arrays = draw("retention")
        del arrays["gamma"]
        self.near(halation.run("retention", **arrays)[0], loops.matrix("retention", **doubles(arrays))[0])
        arrays = draw("delta")
        arrays["beta"] = np.repeat(arrays["beta"][..., None], arrays["v"].shape[-1], axis=-1)
        self.near(halation.run("delta", **arrays)[0], loops.matrix("delta", **doubles(arrays))[0])

    def test_settings(self):
        arrays = draw("linear")
        self.near(halation.run("linear", **arrays, scale=2.0)[0], loops.matrix("linear", **doubles(arrays), scale=2)[0])
        tiled = {**arrays, "q": np.tile(arrays["q"], (1, 1, 2, 1)), "k": np.tile(arrays["k"], (1, 1, 2, 1))}
        self.near(halation.run("linear", **arrays, head_mapping="tiled")[0], loops.matrix("linear", **doubles(tiled))[0])
        arrays = draw("softmax", T=9, S=7)
        self.near(halation.run("softmax", **arrays, non_causal=True)[0], loops.softmax(**doubles(arrays), causal=False))

    def test_float16(self):
        arrays = draw("gated_delta")
        halves = {name: x.astype(np.float16) for name, x in arrays.items()}
        o, state = halation.run("gated_delta", **halves)
        self.assertEqual((o.dtype, state.dtype), (np.float16, np.float32))
        self.near(o, expected("gated_delta", halves)[0], 2e-3)
        mixed = {**halves, "g": arrays["g"], "beta": arrays["beta"]}
        self.near(halation.run("gated_delta", **mixed)[0], expected("gated_delta", mixed)[0], 2e-3)

    def test_strides(self):
        arrays = draw("gated_delta")
        wanted, _ = halation.run("gated_delta", **arrays)
        transposed = {name: np.ascontiguousarray(np.swapaxes(x, 1, 2)).swapaxes(1, 2) for name, x in arrays.items()}
        backward = {name: np.ascontiguousarray(x[..., ::-1])[..., ::-1] for name, x in arrays.items()}
        late = {name: np.ascontiguousarray(x[:, ::-1])[:, ::-1] for name, x in arrays.items()}
        spread = {name: np.repeat(x, 3, axis=-1)[..., ::3] for name, x in arrays.items()}
        for layout in (transposed, backward, late, spread):
            self.assertFalse(layout["q"].flags.c_contiguous)
            np.testing.assert_array_equal(halation.run("gated_delta", **layout)[0], wanted)
        o = np.full((*wanted.shape[:-1], 2 * wanted.shape[-1]), 7, np.float32)
        halation.run("gated_delta", **arrays, o=o[..., ::-2])
        np.testing.assert_array_equal(o[..., ::-2], wanted)
        self.assertTrue((o[..., ::2] == 7).all())
        constant = {**arrays, "beta": np.broadcast_to(np.float32(0.5), arrays["beta"].shape)}  # read-only, strides 0
        full = {**arrays, "beta": np.full_like(arrays["beta"], 0.5)}
        np.testing.assert_array_equal(halation.run("gated_delta", **constant)[0], halation.run("gated_delta", **full)[0])

    def test_nothing_to_do(self):
        for extents in ({"T": 0}, {"B": 0}):
            arrays = draw("gated_delta", **extents)
            o, state = halation.run("gated_delta", **arrays)
            self.assertEqual(o.shape, arrays["v"].shape)
            self.assertFalse(state.any())
        given = np.random.default_rng(1).standard_normal((2, 4, 24, 20)).astype(np.float32)
        _, state = halation.run("gated_delta", **draw("gated_delta", T=0), initial_state=given)
        np.testing.assert_array_equal(state, given)


class Batches(unittest.TestCase):
    def test_packed_sequences_in_a_pool(self):
        arrays = draw("gated_delta", B=1, T=30)
        cuts = [0, 11, 11, 30]
        pool = np.random.default_rng(3).standard_normal((5, 4, 24, 20)).astype(np.float32)
        before = pool.copy()
        o, state = halation.run(
            "gated_delta", **arrays, initial_state=pool, final_state=pool, offsets=np.array(cuts, np.int32),
            read_slots=np.array([4, 0, 2]), write_slots=np.array([4, 0, 2]), has_initial_state=np.array([True, True, False]))
        self.assertIs(state, pool)
        for n, (slot, initial) in enumerate([(4, before[4:5]), (0, before[0:1]), (2, None)]):
            own = {name: x[:, cuts[n] : cuts[n + 1]] for name, x in arrays.items()}
            wanted_o, wanted_state = halation.run("gated_delta", **own, initial_state=initial)
            np.testing.assert_array_equal(o[:, cuts[n] : cuts[n + 1]], wanted_o)
            np.testing.assert_array_equal(pool[slot], wanted_state[0])
        np.testing.assert_array_equal(pool[[1, 3]], before[[1, 3]])

    def test_packed_batch_makes_its_states(self):
        arrays = draw("gla", B=1, T=30)
        o, state = halation.run("gla", **arrays, offsets=np.array([0, 11, 30]))
        self.assertEqual(state.shape, (2, 4, 24, 20))
        np.testing.assert_array_equal(state[1], halation.run("gla", **{n: x[:, 11:] for n, x in arrays.items()})[1][0])

    def test_a_skipped_sequence_has_a_state_of_zeros(self):
        arrays = draw("gla")
        pool = np.ones((1, 4, 24, 20), np.float32)
        o, state = halation.run("gla", **arrays, initial_state=pool, read_slots=np.array([-1, 0]))
        self.assertFalse(o[0].any() or state[0].any())
        self.assertTrue(state[1].any())

    def test_snapshots(self):
        arrays = draw("kda")
        taken = np.zeros((3, 4, 24, 20), np.float32)
        halation.run("kda", **arrays, snapshot_state=taken, snapshot_sequences=np.array([1]), snapshot_tokens=np.array([6]),
                     snapshot_slots=np.array([2]))
        _, wanted = halation.run("kda", **{n: x[1:, :6] for n, x in arrays.items()})
        np.testing.assert_array_equal(taken[2], wanted[0])
        self.assertFalse(taken[:2].any())

    def test_packed_softmax(self):
        arrays = draw("softmax", B=1, T=5, S=20)
        o, _ = halation.run("softmax", **arrays, offsets=np.array([0, 2, 5]), cache_offsets=np.array([0, 12, 20]))
        second = {"q": arrays["q"][:, 2:], "k": arrays["k"][:, 12:], "v": arrays["v"][:, 12:]}
        np.testing.assert_array_equal(o[:, 2:], halation.run("softmax", **second)[0])


if __name__ == "__main__":
    unittest.main()
