"""What is right: plain loops over tokens in float64, from the definitions of the README's table."""

import numpy as np


def expanded(x, value_heads):
    """Key heads as the value heads that read them (grouped)."""
    return np.repeat(x, value_heads // x.shape[2], axis=2)


def elu_plus_1(x):
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def matrix(name, q, k, v, state=None, g=None, gv=None, beta=None, a=None, b=None, bonus=None, gamma=None, scale=None):
    """All recurrences with a state of K x V per head, [B,T,...] in, (o, state) out."""
    B, T, HV, V = v.shape
    K = q.shape[-1]
    if bonus is not None:
        bonus = np.repeat(bonus, HV // bonus.shape[0], axis=0)
    q, k = expanded(q, HV), expanded(k, HV)
    if name == "rwkv7":
        g, a, b = (expanded(x, HV) for x in (g, a, b))
    S = np.zeros((B, HV, K, V)) if state is None else state.astype(np.float64).copy()
    o = np.zeros((B, T, HV, V))
    scale = K**-0.5 if scale is None else scale
    if name == "retention" and gamma is None:
        gamma = 1 - 2.0 ** (-5 - np.arange(HV))
    for t in range(T):
        kt, qt, vt = k[:, t], q[:, t], v[:, t]
        before = S
        if name == "retention":
            S = S * gamma[:, None, None]
        elif g is not None and g.ndim == 3:
            S = S * np.exp(g[:, t])[..., None, None]
        elif g is not None:
            S = S * np.exp(g[:, t])[..., None]
        if gv is not None:
            S = S * np.exp(gv[:, t])[..., None, :]
        u = vt
        if beta is not None:
            strength = beta[:, t] if beta.ndim == 4 else beta[:, t][..., None]
            u = strength * (vt - np.einsum("bhk,bhkv->bhv", kt, S))
        S = S + kt[..., None] * u[..., None, :]
        if a is not None:
            S = S + b[:, t][..., None] * np.einsum("bhk,bhkv->bhv", a[:, t], before)[..., None, :]
        if bonus is not None:
            read = before + bonus[None, :, :, None] * kt[..., None] * vt[..., None, :]
        else:
            read = S
        o[:, t] = scale * np.einsum("bhk,bhkv->bhv", qt, read)
    return o, S


def linear_normalized(q, k, v, state=None):
    B, T, HV, V = v.shape
    q, k = elu_plus_1(expanded(q, HV)), elu_plus_1(expanded(k, HV))
    S, z = (np.zeros((B, HV, q.shape[-1], V)), np.zeros((B, HV, q.shape[-1]))) if state is None else state
    o = np.zeros((B, T, HV, V))
    for t in range(T):
        S = S + k[:, t][..., None] * v[:, t][..., None, :]
        z = z + k[:, t]
        o[:, t] = np.einsum("bhk,bhkv->bhv", q[:, t], S) / np.einsum("bhk,bhk->bh", q[:, t], z)[..., None]
    return o, (S, z)


def ssm(x, dt, A, B, C, D=None, z=None, state=None):
    batch, T, channels = x.shape
    S = np.zeros((batch, A.shape[1], channels)) if state is None else state
    o = np.zeros(x.shape)
    for t in range(T):
        S = np.exp(dt[:, t][:, None, :] * A.T) * S + B[:, t][:, :, None] * (dt[:, t] * x[:, t])[:, None, :]
        o[:, t] = np.einsum("bn,bnd->bd", C[:, t], S)
        if D is not None:
            o[:, t] += D * x[:, t]
        if z is not None:
            o[:, t] *= z[:, t] / (1 + np.exp(-z[:, t]))
    return o, S


def hgrn(v, g, state=None):
    S = np.zeros((v.shape[0], v.shape[2])) if state is None else state
    o = np.zeros(v.shape)
    for t in range(v.shape[1]):
        o[:, t] = S = np.exp(g[:, t]) * S + v[:, t]
    return o, S


def bidirectional(q, k, v):
    HV, K = v.shape[2], q.shape[-1]
    q, k = expanded(q, HV), expanded(k, HV)
    return K**-0.5 * np.einsum("bthk,bhkv->bthv", q, np.einsum("bthk,bthv->bhkv", k, v))


def softmax(q, k, v, causal=True):
    T, HV, K, S = q.shape[1], q.shape[2], q.shape[3], k.shape[1]
    k, v = expanded(k, HV), expanded(v, HV)
    scores = K**-0.5 * np.einsum("bthk,bshk->bhts", q, k)
    if causal:
        scores = np.where(np.arange(S) <= np.arange(S - T, S)[:, None], scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhts,bshv->bthv", weights / weights.sum(-1, keepdims=True), v)
