"""Gated delta rule on NumPy arrays, held against the plain loop that it is. docs/python.md says how to get the module."""

import sys

import halation
import numpy as np

B, T, H, HV, K, V = 2, 100, 2, 4, 64, 32
random = np.random.default_rng(0)


def draw(*shape):
    return random.standard_normal(shape).astype(np.float32)


q, v = draw(B, T, H, K), draw(B, T, HV, V)
k = draw(B, T, H, K)
k /= np.linalg.norm(k, axis=-1, keepdims=True)
g = -0.1 * draw(B, T, HV) ** 2
beta = random.uniform(0, 1, (B, T, HV)).astype(np.float32)

# Outputs are made for the caller; dims and types come from the arrays.
o, state = halation.run("gated_delta", q=q, k=k, v=v, g=g, beta=beta)

# The same by name, into arrays of one's own: a plan is made once and run as often as one likes.
context = halation.Context(threads=1)
plan = halation.Plan(context, "gated_delta", heads=H, value_heads=HV, key_dim=K, value_dim=V)
again, pool = np.empty_like(v), np.zeros((B, HV, K, V), np.float32)
for tokens in (slice(0, 60), slice(60, T)):  # the prompt in two parts, the state in place
    part = {"q": q, "k": k, "v": v, "g": g, "beta": beta, "o": again}
    plan.run(**{name: x[:, tokens] for name, x in part.items()}, initial_state=pool, final_state=pool)

S, wanted = np.zeros((B, HV, K, V)), np.empty(v.shape)
for t in range(T):
    qt, kt = (np.repeat(x[:, t], HV // H, axis=1).astype(float) for x in (q, k))  # value head h reads key head h // 2
    S *= np.exp(g[:, t].astype(float))[..., None, None]
    u = beta[:, t, :, None] * (v[:, t] - np.einsum("bhk,bhkv->bhv", kt, S))
    S += kt[..., None] * u[..., None, :]
    wanted[:, t] = K**-0.5 * np.einsum("bhk,bhkv->bhv", qt, S)

print(f"{plan.describe().kernel}: largest error of o {abs(o - wanted).max():.1e}, of the state {abs(state - S).max():.1e}")
right = np.allclose(o, wanted, atol=1e-5) and np.allclose(state, S, atol=1e-5)
same = np.array_equal(o, again) and np.array_equal(state, pool)  # 60 is a multiple of the chunk
sys.exit(0 if right and same else "wrong")
