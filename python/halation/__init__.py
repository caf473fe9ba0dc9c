"""Halation for Python: recurrent attention kernels on arrays of NumPy, PyTorch and whatever else has DLPack.

`run` makes the outputs itself; `Context` and `Plan` are the C interface, halation.h, name by name.
"""

from ._halation import (
    Choice,
    Context,
    Error,
    Input,
    InternalError,
    InvalidArgument,
    OutOfMemory,
    Plan,
    Recurrence,
    Unsupported,
)
from ._run import recurrences, run

__version__ = "0.1.0"
__all__ = [
    "Choice",
    "Context",
    "Error",
    "Input",
    "InternalError",
    "InvalidArgument",
    "OutOfMemory",
    "Plan",
    "Recurrence",
    "Unsupported",
    "recurrences",
    "run",
]
