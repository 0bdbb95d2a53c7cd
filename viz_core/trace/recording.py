"""A recorder for one block of code: what attention it sees, and under which names.

Inside a `record()` block each call is kept as references to queries and keys after projection, never as a map; any
map, tile or thumbnail is recomputed exactly when someone looks at it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from jaxtyping import Float
from torch import Tensor

from viz_core.trace.call import AttentionCall
from viz_core.trace.source import Direct, Source


def record_weights(weights: Float[Tensor, "batch heads queries keys"], site: str | None = None) -> None:
    """Hand weights that do not come from scaled dot products (additive attention, kernels) to the recorder."""
    trace = current_trace()
    if trace is not None:
        trace.add(Direct(weights.detach()), site)


@contextmanager
def record(differentiable: bool = False) -> Iterator[Trace]:
    """Record every attention call made in this block, by this thread or task and nobody else's.

    Args:
        differentiable: weights are computed whole, outside the fused kernel, and stay in the graph, so that
            an output can be differentiated by them: `call.graph_weights`. Dear in memory; for small inputs.
    """
    trace = Trace(differentiable)
    token = _recorder.set(trace)
    try:
        yield trace
    finally:
        _recorder.reset(token)


@contextmanager
def unrecorded() -> Iterator[None]:
    """Record nothing in this block: a text is written step by step, and recorded once when it stands."""
    token = _recorder.set(None)
    try:
        yield
    finally:
        _recorder.reset(token)


class Trace:
    """The attention calls of one `record()` block, by site, in call order.

    A site called again in the same block is kept as "SITE@2", "SITE@3", ...
    """

    def __init__(self, differentiable: bool = False) -> None:
        self.differentiable = differentiable
        self._calls: dict[str, AttentionCall] = {}
        self._unnamed = 0

    def add(self, source: Source, site: str | None) -> None:
        if site is None:
            site = f"attention.{self._unnamed}"
            self._unnamed += 1
        name, count = site, 1
        while name in self._calls:
            count += 1
            name = f"{site}@{count}"
        self._calls[name] = AttentionCall(name, source)

    @property
    def sites(self) -> tuple[str, ...]:
        """Names of the recorded calls, in call order."""
        return tuple(self._calls)

    def __getitem__(self, site: str) -> AttentionCall:
        try:
            return self._calls[site]
        except KeyError:
            raise KeyError(f"no site {site!r} in this trace; it has {', '.join(self.sites) or 'none'}") from None

    def __iter__(self) -> Iterator[AttentionCall]:
        return iter(self._calls.values())

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def nbytes(self) -> int:
        """Bytes of the storages this recording keeps alive, each counted once."""
        storages = {}
        for call in self:
            for tensor in call.source.tensors():
                storage = tensor.untyped_storage()
                storages[storage.data_ptr()] = storage.nbytes()
        return sum(storages.values())


_recorder: ContextVar[Trace | None] = ContextVar("recorder", default=None)


def current_trace() -> Trace | None:
    """The trace of the `record()` block around this call, in this thread or task; None where nobody listens."""
    return _recorder.get()
