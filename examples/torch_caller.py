"""A server's view of it in PyTorch: bfloat16, heads before tokens, prompts and then token after token in a pool of states."""

import sys

import halation
import torch

H, K, V, slots = 4, 64, 64, 8
prompts = [50, 7, 24]  # tokens of three requests
where = torch.tensor([6, 0, 3], dtype=torch.int32)  # their slots
generated = 20
torch.manual_seed(0)


def draw(tokens):
    """One layer's inputs, [1, tokens, H, ...] as views of [1, H, tokens, ...]: no copy is made of them."""
    q, k, v = (torch.randn(1, H, tokens, D).to(torch.bfloat16).transpose(1, 2) for D in (K, K, V))
    return {"q": q, "k": k / 8, "v": v, "g": -0.1 * torch.rand(1, tokens, H), "beta": torch.rand(1, tokens, H)}


plan = halation.Plan(halation.Context(), "gated_delta", heads=H, value_heads=H, key_dim=K, value_dim=V, type="bfloat16")
pool = torch.full((slots, H, K, V), float("nan"))  # whatever was there before


def step(inputs, lengths, continues):
    """Sequences of these lengths, packed along T, each with its slot."""
    offsets = torch.tensor([0, *torch.tensor(lengths).cumsum(0)], dtype=torch.int32)
    o = torch.empty_like(inputs["v"])
    flags = torch.full((len(lengths),), continues, dtype=torch.uint8)
    plan.run(**inputs, o=o, offsets=offsets, initial_state=pool, final_state=pool, read_slots=where, write_slots=where,
             has_initial_state=flags)
    return o


calls = [(draw(sum(prompts)), prompts)] + [(draw(3), [1, 1, 1]) for _ in range(generated)]
outputs = [step(inputs, lengths, n > 0) for n, (inputs, lengths) in enumerate(calls)]

worst = 0.0
for n, slot in enumerate(where.tolist()):
    S = torch.zeros(H, K, V, dtype=torch.float64)
    for (inputs, lengths), o in zip(calls, outputs):
        first = sum(lengths[:n])
        for t in range(first, first + lengths[n]):
            q, k, v, g, beta = (inputs[name][0, t].double() for name in ("q", "k", "v", "g", "beta"))
            S *= g.exp()[:, None, None]
            u = beta[:, None] * (v - torch.einsum("hk,hkv->hv", k, S))
            S += k[:, :, None] * u[:, None, :]
            wanted = K**-0.5 * torch.einsum("hk,hkv->hv", q, S)
            worst = max(worst, float((o[0, t] - wanted).abs().max() / (1 + wanted.abs().max())))
    worst = max(worst, float((pool[slot] - S).abs().max()))
untouched = [slot for slot in range(slots) if slot not in where.tolist()]
print(f"{plan.describe().kernel}: largest error {worst:.1e}, bfloat16's own is 3.9e-03")
sys.exit(0 if worst < 4e-3 and pool[untouched].isnan().all() else "wrong")
