"""Inputs of any recurrence, drawn from what halation.recurrences() says of it."""

import numpy as np

import halation

EXTENTS = {"B": 2, "T": 21, "S": 30, "H": 2, "HV": 4, "K": 24, "V": 20}


def draw(recurrence, seed=0, **extents):
    """Arrays of float32 by name, with values as the README wants them."""
    random = np.random.default_rng(seed)
    extents = {**EXTENTS, **extents}
    arrays = {}
    for name, wanted in halation.recurrences()[recurrence].inputs.items():
        shape = [extents[letter] for letter in wanted.dims]
        if name == "beta":
            shape = shape[:-1]
        x = random.standard_normal(shape)
        if name in ("g", "gv"):
            x = -0.2 * x**2
        elif name in ("beta", "dt", "gamma"):
            x = random.uniform(0.1, 0.9, shape)
        elif name == "A":
            x = -random.uniform(0.5, 2, shape)
        elif name in ("k", "b") or (name == "a" and recurrence == "rwkv7"):
            x = x / np.linalg.norm(x, axis=-1, keepdims=True)
        arrays[name] = x.astype(np.float32)
    if recurrence == "rwkv7":
        arrays["b"] *= np.float32(-0.5)
    return arrays


def doubles(arrays):
    return {name: x.astype(np.float64) for name, x in arrays.items()}
