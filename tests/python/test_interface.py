"""Context and Plan: refusals, read-only arrays, threads, references, forks, kernels of one's own."""

import gc
import os
import subprocess
import sys
import threading
import time
import unittest
import weakref

import numpy as np

import halation
from inputs import draw

PROBLEM = {"heads": 2, "value_heads": 4, "key_dim": 24, "value_dim": 20}


def call(recurrence="gated_delta", **changes):
    """All that a call of Plan.run takes, with an output."""
    arrays = draw(recurrence)
    return {**arrays, "o": np.zeros_like(arrays["v"]), **changes}


class OnAnotherDevice:
    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_):
        raise AssertionError("asked for data that cannot be read")


class OfOldDlpack:
    """An exporter that knows neither versions nor read-only, like PyTorch 1 or JAX."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


class Refusals(unittest.TestCase):
    def setUp(self):
        self.plan = halation.Plan(halation.Context(1), "gated_delta", **PROBLEM)

    def refused(self, kind, text, function, *args, **kwargs):
        with self.assertRaises(kind) as caught:
            function(*args, **kwargs)
        self.assertEqual(str(caught.exception), text)
        self.assertNotIn("\n", str(caught.exception))

    def run_refused(self, text, kind=halation.InvalidArgument, **changes):
        arguments = call(**changes)
        self.refused(kind, text, self.plan.run, **arguments)
        if isinstance(arguments["o"], np.ndarray):
            self.assertFalse(arguments["o"].any())

    def test_kinds(self):
        for kind, builtin in [("InvalidArgument", ValueError), ("Unsupported", NotImplementedError),
                              ("OutOfMemory", MemoryError), ("InternalError", RuntimeError)]:
            self.assertTrue(issubclass(getattr(halation, kind), (halation.Error, builtin)))
            self.assertTrue(issubclass(getattr(halation, kind), builtin))
        with self.assertRaises(NotImplementedError) as caught:
            halation.Plan(halation.Context(1), "hgrn", heads=1, value_heads=1, key_dim=1, value_dim=8, form="parallel")
        self.assertIsInstance(caught.exception, halation.Unsupported)
        self.assertIn("it has no keys and queries whose products could be masked", str(caught.exception))

    def test_arrays(self):
        q = draw("gated_delta")["q"]
        self.run_refused("q: type is float64; must be float32, the problem's type", q=q.astype(np.float64))
        self.run_refused("q: type is bool8; must be float32, the problem's type", q=q > 0)
        self.run_refused("k: shape is [2, 20, 2, 24]; must be [B, T, H, K] = [2, 21, 2, 24]; T is set by q", k=q[:, :20])
        self.run_refused("k: shape is [2, 21, 24, 2]; must be [B, T, H, K] = [2, 21, 2, 24]; H is set by the problem",
                         k=q.swapaxes(2, 3))
        self.run_refused("q: is missing; must be given, of shape [B, T, H, K] = [B, T, 2, 24]", q=None)
        self.run_refused("q: is on another device (DLPack device type 2); must be on the CPU", q=OnAnotherDevice())
        arrays_are = "must be an array: NumPy's, PyTorch's, any with __dlpack__"
        self.run_refused(f"q: got [1.0], of type list; {arrays_are}", TypeError, q=[1.0])
        self.run_refused(f"q: got an object of type list; {arrays_are}", TypeError, q=list(range(50)))
        self.run_refused(f"gamma: got 1, of type int; {arrays_are}", TypeError, gamma=1)
        with self.assertRaisesRegex(halation.InvalidArgument, "^q: .*native byte order"):
            self.plan.run(**call(q=q.astype(">f4")))
        with self.assertRaisesRegex(halation.InvalidArgument, "recurrence gated_delta has no 'x'; may be q, k, v"):
            self.plan.run(**call(x=q))
        with self.assertRaisesRegex(TypeError, "must be strings"):
            self.plan.run(**{5: q})
        with self.assertRaisesRegex(halation.InvalidArgument, "NUL"):
            self.plan.run(**call(), **{"q\0": q})
        with self.assertRaises(UnicodeError):
            self.plan.run(**call(), **{"\udc80": q})

    def test_outputs(self):
        o = np.zeros_like(draw("gated_delta")["v"])
        o.flags.writeable = False
        self.run_refused("o: is read-only; must be writable, it is an output", o=o)
        self.run_refused("o: is read-only; must be writable, it is an output", o=np.broadcast_to(np.float32(0), o.shape))
        pool = np.zeros((2, 4, 24, 20), np.float32)
        frozen = pool.view()
        frozen.flags.writeable = False
        for name in ("final_state", "snapshot_state"):
            self.run_refused(f"{name}: is read-only; must be writable, it is an output", **{name: frozen})
        self.plan.run(**call(initial_state=frozen))
        repeated = np.lib.stride_tricks.as_strided(np.zeros(1400, np.float32), o.shape, (5360, 0, 0, 4))
        self.run_refused("o: stride of T is 0 over 21 elements; an output's elements must be apart", o=repeated)
        shared = call()
        with self.assertRaisesRegex(halation.InvalidArgument, "^o: shares memory with v"):
            self.plan.run(**{**shared, "o": shared["v"]})

    def test_exporters_of_old(self):
        arguments = call()
        wanted = call()
        self.plan.run(**wanted)
        self.plan.run(**{name: OfOldDlpack(x) for name, x in arguments.items()})
        np.testing.assert_array_equal(arguments["o"], wanted["o"])

    def test_batches(self):
        pool = np.zeros((2, 4, 24, 20), np.float32)
        self.run_refused("read_slots: type is float32; may be int32 or int64", read_slots=np.zeros(2, np.float32),
                         initial_state=pool)
        self.run_refused("has_initial_state: type is int64; may be bool or uint8", has_initial_state=np.zeros(2, np.int64),
                         initial_state=pool)
        self.run_refused("offsets: given with B = 2; a packed batch must have B = 1", offsets=np.array([0, 21]))
        self.run_refused("write_slots: given without final_state, whose rows they name", write_slots=np.array([0, 1]))
        for flags in (np.array([True, False]), np.array([1, 0], np.uint8), bytearray([1, 0])):
            self.plan.run(**call(initial_state=pool, has_initial_state=flags))

    def test_problems(self):
        context = halation.Context(1)

        def plan(recurrence="gated_delta", **changes):
            return halation.Plan(context, recurrence, **{**PROBLEM, **changes})

        self.refused(halation.InvalidArgument, "type: got 'f32'; may be float32, float16 or bfloat16", plan, type="f32")
        self.refused(halation.InvalidArgument, "form: got 'fast'; may be auto, recurrent, chunkwise or parallel", plan, form="fast")
        self.refused(TypeError, "form: got 1, of type int; must be a str", plan, form=1)
        self.refused(TypeError, "heads: got 2.0, of type float; must be an int", plan, heads=2.0)
        self.refused(TypeError, "non_causal: got 1, of type int; must be a bool", plan, non_causal=1)
        self.refused(halation.InvalidArgument, f"heads: got {2**70}, of type int; must fit an int of 64 bits", plan,
                     heads=2**70)
        self.refused(halation.InvalidArgument, "value_heads: got 3; must be a multiple of heads, which is 2", plan, value_heads=3)
        self.refused(TypeError, "recurrence: got 5, of type int; must be a str", plan, 5)
        self.refused(TypeError, "recurrence: got 5, of type int; must be a str", halation.run, 5)
        self.refused(TypeError, "context: got None, of type NoneType; must be a halation.Context", halation.Plan, None, "gla")
        self.refused(halation.InvalidArgument, "heads: got 0; may be 1 to 2147483647", halation.Plan, context, "gla")
        with self.assertRaisesRegex(TypeError, "^Plan: there is no keyword 'head'; may be heads, value_heads"):
            plan(head=2)
        for recurrence in ("nonsense", "gated_delta\0"):
            with self.assertRaises(halation.InvalidArgument):
                plan(recurrence)
        with self.assertRaisesRegex(halation.InvalidArgument, "^recurrence: got 'nonsense'; may be linear, "):
            halation.run("nonsense")
        self.refused(TypeError, "threads: got None, of type NoneType; must be an int", halation.Context, None)
        halation.Plan(recurrence="gla", context=context, **PROBLEM, isa=None, scale=None, feature_map=None)
        self.refused(halation.InvalidArgument, "options.threads: got -1; may be 0 (one per processor) to 1024",
                     halation.Context, -1)

    def test_run(self):
        arrays = draw("gated_delta")
        self.refused(halation.InvalidArgument, "q: is missing; must be given, of shape [B, T, H, K]", halation.run, "gated_delta")
        self.refused(halation.InvalidArgument, "q: shape is [2, 21]; must be [B, T, H, K]", halation.run, "gated_delta",
                     **{**arrays, "q": arrays["q"][:, :, 0, 0]})
        self.refused(halation.InvalidArgument, "type: got 'float64'; may be float32, float16 or bfloat16", halation.run,
                     "gated_delta", **{**arrays, "q": arrays["q"].astype(np.float64)})
        with self.assertRaisesRegex(TypeError, "^q: got \\[1\\], of type list; must be an array"):
            halation.run("gated_delta", **{**arrays, "q": [1]})
        with self.assertRaisesRegex(halation.InvalidArgument, "has no 'gamma'"):
            halation.run("gated_delta", **arrays, gamma=arrays["g"])
        for text, changes in [("offsets: got [0, 21], of type list; must be an array", {"offsets": [0, 21]}),
                              ("initial_state: got (1, 2, 3), of type tuple; must be an array", {"initial_state": (1, 2, 3)}),
                              ("form: got [], of type list; must be a str", {"form": []}),
                              ("context: got 5, of type int; must be a halation.Context", {"context": 5})]:
            with self.assertRaises(TypeError) as caught:
                halation.run("gated_delta", **arrays, **changes)
            self.assertTrue(str(caught.exception).startswith(text), caught.exception)
        self.refused(halation.InvalidArgument, "offsets: shape is []; must be [N + 1]", halation.run, "gated_delta",
                     **draw("gated_delta", B=1), offsets=np.array(3))
        self.refused(halation.InvalidArgument, "threads: given with a context, which has its own", halation.run, "gated_delta",
                     **arrays, threads=1, context=halation.Context(1))
        self.refused(halation.InvalidArgument, "state_type: NumPy has no bfloat16 unless ml_dtypes is imported; give final_state",
                     halation.run, "gated_delta", **arrays, state_type="bfloat16")

    def test_run_asks_for_whole_states_and_true_types(self):
        x = np.ones((1, 3, 2, 4), np.float32)
        _, (state, normalizer) = halation.run("linear_normalized", q=x, k=x, v=x)
        for half in ({"initial_state": state}, {"initial_normalizer": normalizer}):
            self.refused(halation.InvalidArgument, "initial_state: is given without initial_normalizer, or that without it; "
                         "must be both, as the pair that run returns", halation.run, "linear_normalized", q=x, k=x, v=x, **half)
        halation.run("linear_normalized", q=x, k=x, v=x, initial_state=(state, normalizer))
        self.refused(halation.InvalidArgument, "initial_state: got a pair; recurrence linear has no normalizer", halation.run,
                     "linear", q=x, k=x, v=x, initial_state=(state, normalizer))
        for wrong in ([1], 1.0, True):
            self.refused(TypeError, f"threads: got {wrong!r}, of type {type(wrong).__name__}; must be an int", halation.run,
                         "linear", q=x, k=x, v=x, threads=wrong)
        for _ in range(2):  # 4 is in no way 4.0, now or later
            self.refused(TypeError, "chunk: got 4.0, of type float; must be an int", halation.run, "linear", q=x, k=x, v=x,
                         chunk=4.0)
            halation.run("linear", q=x, k=x, v=x, chunk=4)

    def test_workspace(self):
        arguments = call()
        size = self.plan.workspace(**arguments)
        self.assertGreater(size, 0)
        memory = np.empty(size + 64, np.uint8)
        aligned = memory[-memory.ctypes.data % 64 :][:size]
        self.plan.run(**arguments, workspace=aligned)
        wanted = call()
        self.plan.run(**wanted)
        np.testing.assert_array_equal(arguments["o"], wanted["o"])
        self.run_refused(f"workspace_bytes: got {size - 64}; must be at least {size}", workspace=aligned[: size - 64])
        self.run_refused("workspace: has strides; must be compact", workspace=memory[::2])
        aligned.flags.writeable = False
        self.run_refused("workspace: is read-only; must be writable, it is an output", workspace=aligned)


class Looking(unittest.TestCase):
    def test_recurrences(self):
        rows = halation.recurrences()
        row = rows["gated_delta"]
        self.assertEqual(list(row.inputs), ["q", "k", "v", "g", "beta"])
        self.assertEqual(row.inputs["beta"].dims, ("B", "T", "HV", "V"))
        self.assertTrue(row.inputs["beta"].last_axis_optional)
        self.assertEqual((row.state_dims, row.normalizer_dims), (("N", "HV", "K", "V"), ()))
        self.assertEqual(row.forms, ("recurrent", "chunkwise", "parallel"))
        self.assertEqual(rows["ssm"].forms, ("recurrent", "chunkwise"))
        self.assertIn("decays differ by element", rows["ssm"].refused["parallel"])
        self.assertTrue(rows["ssm"].inputs["z"].optional)
        self.assertEqual(rows["retention"].inputs["gamma"].default, "1 - 2^(-5-h)")
        self.assertEqual(rows["linear_normalized"].default_feature_map, "elu+1")
        self.assertTrue(any(name.startswith("gated_delta_chunkwise_cpu_") for name in row.kernels))
        self.assertIn("not parallel: it has no keys", str(rows["hgrn"]))

    def test_describe(self):
        choice = halation.Plan(halation.Context(1), "gated_delta", **PROBLEM, form="chunkwise").describe()
        self.assertEqual((choice.form, choice.chunk), ("chunkwise", 4))
        self.assertIn("gated_delta_chunkwise_cpu_" + choice.isa, choice.kernel)


class Living(unittest.TestCase):
    def test_no_reference_is_kept(self):
        context = halation.Context(1)
        plan = halation.Plan(context, "gated_delta", **PROBLEM)
        arguments = call()
        plan.run(**arguments)
        plan.workspace(**arguments)
        with self.assertRaises(halation.Error):
            plan.run(**{**arguments, "g": arguments["q"]})
        halation.run("gated_delta", **{name: x for name, x in arguments.items() if name != "o"})
        alive = [weakref.ref(x) for x in arguments.values()]
        counts = {name: sys.getrefcount(x) for name, x in arguments.items()}
        for _ in range(100):
            plan.run(**arguments)
        self.assertEqual(counts, {name: sys.getrefcount(x) for name, x in arguments.items()})
        del arguments
        gc.collect()
        self.assertEqual([x() for x in alive], [None] * len(alive))

    def test_a_context_dies_with_its_plans(self):
        context = halation.Context(1)
        halation.run("gla", **draw("gla"), context=context)  # which keeps a plan
        plan = halation.Plan(context, "gated_delta", **PROBLEM)
        gone = weakref.ref(context)
        del context
        gc.collect()
        self.assertIsNone(gone())
        plan.run(**call())

    def test_two_contexts_agree(self):
        outputs = []
        for threads in (1, 2):
            plan = halation.Plan(halation.Context(threads), "gated_delta", **PROBLEM)
            outputs.append(call())
            plan.run(**outputs[-1])
        np.testing.assert_array_equal(outputs[0]["o"], outputs[1]["o"])

    def test_threads(self):
        shared = halation.Context()
        wanted = {name: halation.run(name, **draw(name))[0] for name in ("gla", "gated_delta", "hgrn")}
        wrong = []

        def work(name, context):
            for _ in range(20):
                if not np.array_equal(halation.run(name, **draw(name), context=context)[0], wanted[name]):
                    wrong.append(name)
                try:
                    halation.run(name, context=context)
                except halation.InvalidArgument as error:
                    if "is missing" not in str(error):
                        wrong.append(str(error))

        workers = [threading.Thread(target=work, args=(name, context)) for name in wanted for context in (shared, None)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(wrong, [])

    def test_python_goes_on_while_a_kernel_runs(self):
        arrays = draw("linear", B=1, T=3000, H=4, HV=4, K=64, V=64)
        settings = {"form": "parallel", "threads": 1}
        halation.run("linear", **arrays, **settings)  # makes context and plan
        running = threading.Event()

        def work():
            running.set()
            for _ in range(3):
                halation.run("linear", **arrays, **settings)

        worker = threading.Thread(target=work)
        interval = sys.getswitchinterval()
        sys.setswitchinterval(10)  # whoever holds the lock keeps it, unless it lets go by itself
        try:
            worker.start()
            running.wait()
            ticks = 0
            while worker.is_alive():
                ticks += 1
                time.sleep(0.001)
        finally:
            sys.setswitchinterval(interval)
        worker.join()
        self.assertGreater(ticks, 8)  # 3 where a kernel holds it, a hundred where none does

    @unittest.skipUnless(hasattr(os, "fork"), "this system has no fork")
    def test_fork(self):
        # In a process of its own: forking one that has had threads is for those who mean to.
        code = """
import os, sys, numpy as np, halation
x = np.ones((1, 64, 4, 16), np.float32)
wanted = halation.run("linear", q=x, k=x, v=x)[0]
context = halation.Context(2)
plan = halation.Plan(context, "linear", heads=4, value_heads=4, key_dim=16, value_dim=16)
if os.fork() == 0:
    try:
        plan.run(q=x, k=x, v=x, o=np.empty_like(x))
        sys.exit(1)
    except halation.Error as error:
        if "did not survive the fork" not in str(error): sys.exit(2)
    sys.exit(0 if np.array_equal(halation.run("linear", q=x, k=x, v=x)[0], wanted) else 3)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""
        done = subprocess.run([sys.executable, "-c", code], timeout=60)
        self.assertEqual(done.returncode, 0)

    def test_fork_while_others_run(self):
        # A lock that another thread holds at the fork is held for ever in the child.
        script = """
import os, signal, sys, threading, halation
from inputs import draw
arrays = draw("gated_delta")
sys.setswitchinterval(1e-6)
def loop():
    while True:
        halation.run("gated_delta", **arrays)
for _ in range(3):
    threading.Thread(target=loop, daemon=True).start()
for _ in range(60):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        halation.run("gated_delta", **arrays)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        os._exit(1)
os._exit(0)
"""
        subprocess.run([sys.executable, "-c", script], check=True, timeout=120)

    def test_the_interpreter_may_end_while_a_kernel_runs(self):
        script = """
import threading, time, numpy as np, halation
x = np.full((1, 20000, 4, 64), 0.01, np.float32)
def loop():
    while True:
        halation.run("linear", q=x, k=x, v=x)
threading.Thread(target=loop, daemon=True).start()
time.sleep(0.3)
"""
        for _ in range(5):
            ended = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=120)
            self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, b"", b""))


class OwnKernels(unittest.TestCase):
    def test_refusals(self):
        context = halation.Context(1)
        with self.assertRaisesRegex(halation.InvalidArgument, "^library: .*nowhere.so"):
            context.add_kernels("nowhere.so", "kernels")
        with self.assertRaisesRegex(halation.InvalidArgument, "^function: .* has no 'kernels'; must be the TABLE"):
            context.add_kernels("libc.so.6", "kernels")
        with self.assertRaisesRegex(TypeError, "^function: got None"):
            context.add_kernels("libc.so.6", None)

    @unittest.skipUnless("HALATION_TEST_KERNELS" in os.environ, "HALATION_TEST_KERNELS names no library with comba_kernels")
    def test_a_recurrence_of_another_library(self):
        from pathlib import Path

        context = halation.Context(1)
        for _ in range(2):  # once is enough
            context.add_kernels(Path(os.environ["HALATION_TEST_KERNELS"]), "comba_kernels")
        self.assertNotIn("comba", halation.recurrences())
        self.assertIn("comba", context.recurrences())
        arrays = draw("gated_delta")
        # Without feedback and with d = 0 it is gated with a weight of the write.
        zeros = np.zeros_like(arrays["g"])
        o, state = halation.run("comba", **arrays, beta_feedback=zeros, d=np.zeros(4, np.float32), context=context)
        del context
        gc.collect()
        weighted = {n: x for n, x in arrays.items() if n != "beta"}
        weighted["v"] = arrays["v"] * arrays["beta"][..., None]
        wanted, wanted_state = halation.run("gated", **weighted)
        np.testing.assert_allclose(o, wanted, atol=1e-5)
        np.testing.assert_allclose(state, wanted_state, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
