"""Whether recording changed a model: its outputs with and without it, and maps against what the heads wrote."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from viz_core.trace.weights import TokenMask


@dataclass(frozen=True)
class Verification:
    """Errors of a recorded pass against the same pass without the recording.

    Attributes:
        output_error: largest difference of an output vector, relative to its size; None if it was not compared.
        map_errors: by site, the largest difference of a weight from the eager map; NaN where eager gives no such map.
        value_errors: by site, the largest difference of weights times values from what the heads wrote, relative to
            the largest number written.
        uncovered: why layers have no map, a sentence for each reason.
        reason: why the output was not compared; "" where it was.
    """

    output_error: float | None = None
    map_errors: Mapping[str, float] = field(default_factory=dict)
    value_errors: Mapping[str, float] = field(default_factory=dict)
    uncovered: tuple[str, ...] = ()
    reason: str = ""

    @property
    def map_error(self) -> float | None:
        """The largest of the map errors; None where no map was compared."""
        return max((error for error in self.map_errors.values() if error == error), default=None)

    @property
    def value_error(self) -> float | None:
        """The largest of the value errors; None where none was measured."""
        return max(self.value_errors.values(), default=None)

    def __str__(self) -> str:
        """Return what was verified, in a line."""
        if self.output_error is None:
            return f"not verified: {self.reason}"
        parts = [f"output unchanged to {self.output_error:.0e}"]
        if self.map_error is not None:
            parts.append(f"maps equal eager to {self.map_error:.0e}")
        if self.value_error is not None:
            parts.append(f"weights times values equal outputs of heads to {self.value_error:.0e}")
        return ", ".join([*parts, *self.uncovered])

    def worst(self, other: "Verification | None") -> "Verification":
        """Return this or the other, whichever is not verified or has the larger error."""
        if other is None or (other.output_error is not None and self.output_error is None):
            return self
        return self if (self.output_error or 0) >= (other.output_error or 0) and not other.reason else other


def tensors_of(output: Any, path: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield the floating-point tensors of a model's output by their paths, without its maps and caches."""
    if isinstance(output, Tensor):
        if output.is_floating_point():
            yield path, output
    elif isinstance(output, Mapping):
        for name, value in output.items():
            if "attentions" not in str(name) and "past_key_values" not in str(name):
                yield from tensors_of(value, f"{path}.{name}")
    elif isinstance(output, tuple | list):
        for place, value in enumerate(output):
            yield from tensors_of(value, f"{path}.{place}")
    elif is_dataclass(output):
        yield from tensors_of({item.name: getattr(output, item.name) for item in fields(output)}, path)


def output_error(expected: Any, got: Any, token_masks: tuple[TokenMask, ...] = ()) -> float | None:
    """Return the largest ||got - expected|| / (||expected|| + mean ||expected||) of a vector of a model's outputs.

    Vectors at padding are left out: an output (batch, n, ...) has that of the first mask (batch, n or more). So are
    those that are not numbers without the recording. None if the outputs share no tensor of one shape.
    """
    theirs, worst = dict(tensors_of(got)), None
    for path, tensor in tensors_of(expected):
        other = theirs.get(path)
        if other is None or other.shape != tensor.shape or not tensor.numel():
            continue
        n = tensor.shape[1] if tensor.dim() > 2 else 0  # of the last positions, where not all are returned
        fitting = (each[:, -n:] for each in token_masks if n and each.shape[0] == len(tensor) and n <= each.shape[1])
        mask = next(fitting, None)
        tensor, other = (torch.atleast_1d(each.detach().float()) for each in (tensor, other))
        error = _vector_error(tensor, other, mask)
        worst = error if worst is None else max(worst, error)
    return worst


def _vector_error(expected: Tensor, got: Tensor, mask: TokenMask | None) -> float:
    if mask is not None:
        mask = mask.to(expected.device)
        expected, got = expected[mask], got[mask]
    if torch.equal(expected, got):  # also where there are none
        return 0.0
    sizes, errors = _norms(expected, got)
    if not bool((sizes + errors).isfinite().all()):
        usable, finite = ~expected.isnan(), expected.isfinite()
        same = (expected == got) | ~usable
        if bool((usable & ~finite & ~same).any()) or not bool(got[finite].isfinite().all()):
            return float("inf")
        sizes, errors = _norms(expected.where(finite, 0.0), got.where(finite, 0.0))
    return float((errors / (sizes + sizes.mean()).clamp(min=torch.finfo(torch.float32).tiny)).max())


def _norms(expected: Tensor, got: Tensor) -> tuple[Tensor, Tensor]:
    """Return the norm of each vector, and that of its error."""
    return torch.linalg.vector_norm(expected, dim=-1), torch.linalg.vector_norm(got - expected, dim=-1)


def rounding(*dtypes: torch.dtype) -> tuple[float, float]:
    """Return the precision of the coarsest of these types, and the error that a whole model may have by rounding."""
    precision = max((torch.finfo(dtype).eps for dtype in dtypes if dtype.is_floating_point), default=1e-7)
    return precision, max(1e-4, 8 * precision)
