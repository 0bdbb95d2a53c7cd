"""The weights that a layer in plain PyTorch multiplies its values by: of its softmax, or what it makes of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import ref

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.trace.arguments import version
from viz_core.trace.torch_layers import TrackedLayer, softmax_weights

_PRODUCTS: frozenset[Callable[..., Any]] = frozenset(
    {torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm}
)


_SCORES = _PRODUCTS | {torch.einsum, torch.baddbmm, Tensor.baddbmm, torch.exp, Tensor.exp, Tensor.exp_}
_QUOTIENTS: frozenset[Callable[..., Any]] = frozenset(
    {torch.div, Tensor.div, Tensor.div_, Tensor.__truediv__, Tensor.__itruediv__, torch.true_divide}
)


def factors_of(function: Callable[..., Any], args: tuple[Any, ...]) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Yield what a call may multiply as weights (..., queries, keys) by values (..., keys, v), or by others (None)."""
    if function in _PRODUCTS and len(args) == 2:
        yield args
    elif function is torch.einsum and isinstance(args[0], str):
        factors = args[1] if len(args) == 2 and isinstance(args[1], list | tuple) else args[1:]
        names, _, out = args[0].replace(" ", "").partition("->")
        if len(factors) == 2 and out:
            (one, other), (left, right) = names.split(","), factors
            for (own, weights), (theirs, values) in (((one, left), (other, right)), ((other, right), (one, left))):
                if own[-1] in theirs and own[-1] not in out and own[-2] in out and own[-2] not in theirs:
                    yield weights, values if theirs[-2:-1] == own[-1] else None


def _values_of(factor: Tensor | None, shape: tuple[int, ...]) -> Float[Tensor, "batch key_heads keys v"] | None:
    """Return what weights of this shape are multiplied by, as values; None if it does not fit."""
    batch, heads, _, num_keys = shape
    if factor is None or factor.dim() < 3 or factor.shape[-2] != num_keys:
        return None
    number = factor.shape[:-2].numel()
    if number not in (batch, batch * heads):
        return None
    return factor.reshape(batch, number // batch, num_keys, factor.shape[-1])  # of each head, or one for all


class _Softmax(NamedTuple):
    handle: Any
    shape: tuple[int, int, int, int]
    result: Tensor
    version: int | None


class Matched(NamedTuple):
    """A softmax whose result was multiplied by values."""

    handle: Any
    shape: tuple[int, int, int, int]
    values: Tensor | None


class _Used(NamedTuple):
    weights: Float[Tensor, "batch heads queries keys"]
    values: Tensor | None
    result: Tensor
    is_factor: bool  # itself what was multiplied, not a view of it


@dataclass
class Pending:
    """Softmaxes of a layer that have not been multiplied by values yet, and the weights that may be used instead."""

    mode: Any
    layer: TrackedLayer
    softmaxes: list[_Softmax] = field(default_factory=list)
    # a factor of the shape of a map that is no result of a softmax. It is what the layer uses if no other softmax
    # follows, whose scores it may have been for
    candidate: _Used | None = None

    def add(self, handle: Any, shape: Any, result: Tensor) -> None:
        """Add the result of a softmax."""
        self.candidate = None
        self.softmaxes.append(_Softmax(handle, tuple(shape), result, version(result)))

    def find(self, factor: Any, values: Any, result: Tensor) -> Matched | None:
        """Return the softmax whose result is multiplied here, if any; else the factor may be weights made of it."""
        if not isinstance(factor, Tensor):
            return None
        for softmax in reversed(self.softmaxes):
            if _is_result(factor, softmax):
                self.softmaxes.remove(softmax)
                return Matched(softmax.handle, softmax.shape, _values_of(values, softmax.shape))
        for softmax in self.softmaxes:
            batch, _, num_queries, num_keys = softmax.shape
            if factor.shape[-2:] != (num_queries, num_keys) or factor.numel() % (batch * num_queries * num_keys):
                continue
            weights = factor if factor.dim() == 4 else factor.reshape(batch, -1, num_queries, num_keys)
            found = _values_of(values, tuple(weights.shape))
            if found is not None or values is None or values.dim() >= 3:
                self.candidate = _Used(weights, found, result, weights is factor)
        return None


def _is_result(factor: Tensor, softmax: _Softmax) -> bool:
    """Whether a factor is the result of a softmax, unchanged but for its shape and type, or after dropout."""
    result = softmax.result
    if factor.numel() != result.numel() or factor.shape[-2:] != result.shape[-2:]:
        return False
    if version(result) != softmax.version:
        return False  # changed in place
    if factor is result or (factor.data_ptr() == result.data_ptr() and factor.dtype == result.dtype):
        return True
    own = result.detach().to(factor.dtype).reshape(factor.shape)
    given = factor.detach()
    if torch.equal(given, own):
        return True
    factors = (given / own)[(given != 0) & (own != 0)].float()
    if not factors.numel() or bool(((given != 0) & (own == 0)).any()):
        return False
    least, most = factors.aminmax()
    return bool(least > 1.001 and most - least <= 0.02 * least)  # dropout: what it keeps grows by one factor


@dataclass
class OwnWeights:
    """Weights that a layer makes of products of queries and keys without a softmax of torch's: exp(s) / sum exp(s).

    Whatever is computed from such a product and has its size may be weights. They are once values are multiplied by it.
    """

    mode: Any
    layer: TrackedLayer
    found: list[_Used] = field(default_factory=list)
    _made: list["ref[Tensor]"] = field(default_factory=list)  # scores, and what is made of them
    _undropped: tuple["ref[Tensor]", Tensor] | None = None  # what dropout gave, and what it was given

    def follow(self, function: Callable[..., Any], args: tuple[Any, ...], result: Any) -> None:
        """Keep what a call makes of scores, and the weights that it multiplies values by."""
        if not isinstance(result, Tensor) or not args:
            return
        for factor, values in factors_of(function, args) if function in _PRODUCTS | {torch.einsum} else ():
            if not self._is_made(factor):
                continue
            if self._undropped is not None and self._undropped[0]() is factor:
                factor = self._undropped[1]
            weights = softmax_weights(factor, self.layer.heads, (factor, -1), {})
            if weights is not None and (values is None or values.dim() >= 3):
                self.found.append(_Used(weights, _values_of(values, tuple(weights.shape)), result, True))
                return
        first = args[0]
        if self.found and function in _QUOTIENTS and first is self.found[-1].result and isinstance(args[1], Tensor):
            self._divide(args[1], result)
        elif function in _SCORES or (self._is_made(first) and result.numel() == first.numel()):
            self._made.append(ref(result))
            if function is F.dropout:
                self._undropped = ref(result), first

    def _divide(self, sums: Tensor, result: Tensor) -> None:
        """Divide weights by sums that the layer divides the products by, afterwards."""
        used = self.found[-1]
        if sums.shape[-1] == 1 and sums.numel() == used.weights.shape[:3].numel():
            weights = used.weights / sums.reshape(*used.weights.shape[:3], 1)
            self.found[-1] = used._replace(weights=weights, result=result)

    def _is_made(self, tensor: Any) -> bool:
        return any(each() is tensor for each in self._made)


def is_signed(weights: Float[Tensor, "batch heads queries keys"]) -> bool:
    """Whether weights are negative somewhere, or rows other than zeros do not sum to 1."""
    sums = weights.float().sum(dim=-1)
    return bool((weights < 0).any() | ((sums - 1).abs() > 0.01).logical_and(sums != 0).any())
