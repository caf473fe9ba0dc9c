"""halation.run: dims from shapes, types from arrays, outputs of the same library as the inputs."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from typing import Any

from ._halation import Context, InvalidArgument, Plan, Recurrence

# What is kept from call to call: a context for each count of threads, and what is known of each context.
_lock = threading.Lock()
_contexts: dict[int, Context] = {}
_known: weakref.WeakKeyDictionary[Context, _Known] = weakref.WeakKeyDictionary()
_most_plans = 256  # of a context; more than any program means to have


def _forget() -> None:
    """In a child of a fork: the lock may have been held by a thread that is not there, and contexts do not survive."""
    global _lock, _known
    _lock = threading.Lock()
    _contexts.clear()
    _known = weakref.WeakKeyDictionary()


os.register_at_fork(after_in_child=_forget)


class _Known:
    """The recurrences and plans of a context."""

    def __init__(self) -> None:
        self.recurrences: dict[str, Recurrence] = {}
        self.plans: dict[tuple[Any, ...], Plan] = {}


def _shared_context(threads: int) -> Context:
    if type(threads) is not int:
        raise TypeError(f"threads: got {_shown(threads)}; must be an int")
    with _lock:
        if threads not in _contexts:
            _contexts[threads] = Context(threads)
        return _contexts[threads]


def recurrences() -> dict[str, Recurrence]:
    """What Halation's own kernels can compute, by name."""
    return _shared_context(0).recurrences()


def _recurrence(known: _Known, context: Context, name: str) -> Recurrence:
    if name not in known.recurrences:
        known.recurrences = context.recurrences()  # anew: kernels may have been added
    if name not in known.recurrences:
        raise InvalidArgument(f"recurrence: got '{name}'; may be {', '.join(known.recurrences)}")
    return known.recurrences[name]


def _plan(known: _Known, context: Context, recurrence: str, problem: dict[str, Any]) -> Plan:
    # With types: 4.0 equals 4, and is refused.
    key = (recurrence, *((type(value), value) for value in problem.values()))
    try:
        plan = known.plans.get(key)
    except TypeError:  # a list or the like, which Plan refuses by name
        plan = None
    if plan is None:
        plan = Plan(context, recurrence, **problem)
        with _lock:
            if len(known.plans) >= _most_plans:
                known.plans.clear()
            known.plans[key] = plan
    return plan


def _shown(value: Any) -> str:
    text = repr(value)
    return (f"{text}, " if len(text) <= 60 and "\n" not in text else "an object ") + f"of type {type(value).__name__}"


def _array(name: str, value: Any) -> Any:
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        raise TypeError(f"{name}: got {_shown(value)}; must be an array: NumPy's, PyTorch's, any with __dlpack__")
    return value


def _type_name(name: str, array: Any) -> str:
    return str(_array(name, array).dtype).rpartition(".")[2]  # float32, torch.float32


def _extents(recurrence: Recurrence, tensors: dict[str, Any]) -> dict[str, int]:
    """The extent of every letter, each from the first input that has it. Whether they agree is for the runtime to say."""
    extents: dict[str, int] = {}
    for name, wanted in recurrence.inputs.items():
        if tensors.get(name) is None:
            if not wanted.optional:
                raise InvalidArgument(f"{name}: is missing; must be given, of shape [{', '.join(wanted.dims)}]")
            continue
        shape = tuple(_array(name, tensors[name]).shape)
        rank = len(wanted.dims)
        if len(shape) != rank and not (wanted.last_axis_optional and len(shape) == rank - 1):
            raise InvalidArgument(f"{name}: shape is {list(shape)}; must be [{', '.join(wanted.dims)}]")
        for letter, extent in zip(wanted.dims, shape):
            extents.setdefault(letter, extent)
    return extents


def _zeros(like: Any, shape: list[int], type_name: str | None = None) -> Any:
    """Of the library of `like`, and of its type unless another is named. Zeros, for the states of sequences left out."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        return torch.zeros(shape, dtype=getattr(torch, type_name) if type_name else like.dtype, device="cpu")
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(like, numpy.ndarray):
        try:
            return numpy.zeros(shape, type_name or like.dtype)
        except TypeError:
            why = f"state_type: NumPy has no {type_name} unless ml_dtypes is imported; give final_state"
            raise InvalidArgument(why) from None
    library = type(like).__module__
    raise TypeError(f"outputs are made for arrays of NumPy and PyTorch, not of {library}; give o and final_state, or use Plan")


def run(
    recurrence: str,
    *,
    context: Context | None = None,
    threads: int = 0,
    form: str = "auto",
    isa: str | None = None,
    scale: float | None = None,
    feature_map: str | None = None,
    head_mapping: str = "grouped",
    chunk: int = 0,
    non_causal: bool = False,
    state_type: str | None = None,
    **tensors: Any,
) -> tuple[Any, Any]:
    """Runs a recurrence on arrays by name and returns (o, final_state), made by the library of the first input.

    final_state is None for a recurrence without a state, and the pair (state, normalizer) for one with a normalizer; it can
    be given to the next call as initial_state. `o`, `final_state` and `final_normalizer` that are given are written in
    place and returned. Whatever else Plan.run takes may be given too. state_type is that of initial_state or final_state, or
    else float32. Without `context`, one with Halation's own kernels and so many threads is made once and kept.
    """
    if not isinstance(recurrence, str):
        raise TypeError(f"recurrence: got {_shown(recurrence)}; must be a str")
    if context is None:
        context = _shared_context(threads)
    elif not isinstance(context, Context):
        raise TypeError(f"context: got {_shown(context)}; must be a halation.Context")
    elif threads:
        raise InvalidArgument("threads: given with a context, which has its own")
    with _lock:
        known = _known.setdefault(context, _Known())
    row = _recurrence(known, context, recurrence)
    for end in ("initial", "final"):
        state = tensors.get(f"{end}_state")
        if isinstance(state, tuple) and len(state) == 2:
            if not row.normalizer_dims:
                raise InvalidArgument(f"{end}_state: got a pair; recurrence {recurrence} has no normalizer")
            tensors[f"{end}_state"], tensors[f"{end}_normalizer"] = state
    if row.normalizer_dims and (tensors.get("initial_state") is None) != (tensors.get("initial_normalizer") is None):
        raise InvalidArgument("initial_state: is given without initial_normalizer, or that without it; "
                              "must be both, as the pair that run returns")

    extents = _extents(row, tensors)
    given = [x for x in row.inputs.values() if tensors.get(x.name) is not None]
    types = {x.role: _type_name(x.name, tensors[x.name]) for x in reversed(given)}  # the first of each role
    for name in ("final_state", "initial_state"):
        if state_type is None and tensors.get(name) is not None:
            state_type = _type_name(name, tensors[name])
    first = next(tensors[x.name] for x in given if x.role == "data")
    problem = {
        "heads": extents.get("H", 1),
        "value_heads": extents.get("HV", extents.get("H", 1)),
        "key_dim": extents.get("K", 1),
        "value_dim": extents.get("V", 1),
        "type": types["data"],
        "gate_type": types.get("gate", "float32"),
        "state_type": state_type or "float32",
        "form": form,
        "isa": isa,
        "scale": scale,
        "feature_map": feature_map,
        "head_mapping": head_mapping,
        "chunk": chunk,
        "non_causal": non_causal,
    }
    plan = _plan(known, context, recurrence, problem)

    def make(name: str, dims: tuple[str, ...], type_name: str | None = None) -> None:
        if tensors.get(name) is None:
            tensors[name] = _zeros(first, [extents[letter] for letter in dims], type_name)

    make("o", row.output_dims)
    # Who names slots has a pool, which cannot be made here.
    if row.state_dims and tensors.get("write_slots") is None:
        offsets = tensors.get("offsets")
        extents["N"] = extents["B"] if offsets is None else max(sum(_array("offsets", offsets).shape) - 1, 0)
        make("final_state", row.state_dims, problem["state_type"])
        if row.normalizer_dims:
            make("final_normalizer", row.normalizer_dims, "float32")
    plan.run(**tensors)
    final_state = tensors.get("final_state")
    return tensors["o"], (final_state, tensors.get("final_normalizer")) if row.normalizer_dims else final_state
