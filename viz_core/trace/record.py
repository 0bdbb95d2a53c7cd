"""A recorder for one block of code: what attention it sees, and under which names.

Inside a `record()` block each call is kept as references to queries and keys after projection, never as a map; any
map, tile or thumbnail is recomputed exactly when someone looks at it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.torch_internals.compiler import break_graph, must_break_graph, run_eagerly
from viz_core.torch_internals.tensors import current_backward
from viz_core.trace.arguments import check_axes, check_device, check_tensors
from viz_core.trace.call import AttentionCall
from viz_core.trace.intervene import refuse_edits
from viz_core.trace.references import detached, refuse_transformed
from viz_core.trace.source import Direct, Source, StoredTensors
from viz_core.trace.torch_layers import LayerTracker
from viz_core.trace.torch_mode import RecordingMode


def record_weights(
    weights: Float[Tensor, "batch heads queries keys"],
    site: str | None = None,
    values: Float[Tensor, "batch key_heads keys v"] | None = None,
) -> None:
    """Hand weights that do not come from scaled dot products (additive attention, kernels) to the recorder.

    Args:
        values: what they are to add up; kept where the recorder keeps values.

    Raises:
        ValueError: if they are no floating-point tensor of four axes, or there is not a value for each key; within
            `torch.func.vmap` while somebody records; if an intervention names their site, as nobody can edit them.
    """
    refuse_edits(site)
    check_tensors(weights=weights)
    check_axes("batch heads queries keys", weights=weights)
    if values is not None:
        check_tensors(values=values)
        check_device(weights=weights, values=values)
        check_axes("batch key_heads keys v", values=values)
        if values.shape[0] != weights.shape[0] or values.shape[2] != weights.shape[3]:
            shapes = f"{tuple(weights.shape)} and {tuple(values.shape)}"
            raise ValueError(f"expected a value for each key of the weights, got shapes {shapes}")
    trace = current_trace()
    if trace is not None:
        added_up = None if values is None or not trace.values else detached(values)
        trace.add(Direct(detached(weights), added_up), site)


@contextmanager
def record(
    differentiable: bool = False,
    torch_calls: bool | nn.Module = False,
    *,
    values: bool = False,
    kind: Callable[[bool, bool], Trace] | None = None,
) -> Iterator[Trace]:
    """Record every attention call made in this block, by this thread or task and nobody else's.

    What `torch.compile` made runs uncompiled meanwhile, for this thread alone. What activation checkpointing
    runs a second time is recorded once; of layers that are compiled as well, and with `differentiable`, the backward
    pass belongs in the block: torch refuses a second run that goes another way. `torch.func.grad` is recorded,
    `torch.func.vmap` refused. Of what `torch.export` or `torch.jit` made nothing is heard: it holds no layers any more.

    Args:
        differentiable: weights are computed whole, outside the fused kernel, and stay in the graph, so that
            an output can be differentiated by them: `call.graph_weights`. Dear in memory; for small inputs. Not for
            checkpointed layers on a GPU: their second run is in a thread of autograd's, which knows of no recorder.
        torch_calls: hear plain PyTorch too: `F.scaled_dot_product_attention`, `nn.MultiheadAttention`,
            `nn.Transformer` and its parts with their fast path, timm. Given the model itself, its layers have their
            names as sites ("encoder.0.self"); with True each call is "attention.N". What is computed stays bit for bit
            as it is. A nested batch is recorded as long as its longest member. Weights that a named layer makes by
            matrix products of its own are seen at its softmax, and kept as they are, whole.
        values: keep references to values too, for `viz_core.maps.contributions`; not those of plain PyTorch's calls.
        kind: makes the trace, of what a `Trace` is made of: one that keeps less than all that it hears.

    Raises:
        ValueError: if torch_calls is neither a truth value nor a model, or comes with differentiable: torch's own
            kernels keep no weights in the graph; if values come with differentiable.
    """
    trace = (kind or Trace)(differentiable, values or (_keeps_values.get() and not differentiable))
    trace._hearing = _hearing(trace, torch_calls)
    try:
        with trace.adopt():
            yield trace
    finally:
        trace._hearing = None


def _hearing(trace: Trace, torch_calls: bool | nn.Module) -> RecordingMode | None:
    """What hears plain PyTorch for a trace, where that is wanted."""
    if torch_calls is False:
        return None
    if torch_calls is not True and not isinstance(torch_calls, nn.Module):
        raise ValueError(f"torch_calls: expected True, False or a model, got {type(torch_calls).__name__}")
    if trace.differentiable:
        raise ValueError("torch_calls: expected False with differentiable, as torch's own kernels keep no weights")

    def keep(source: Source, site: str | None) -> None:
        if isinstance(source, Direct):
            refuse_edits(site)
        trace.add(source, site)

    layers = LayerTracker(None if torch_calls is True else torch_calls)
    return RecordingMode(lambda: current_trace() is trace, keep, layers)


@contextmanager
def no_recording() -> Iterator[None]:
    """Record nothing in this block: a text is written step by step, and recorded once when it stands."""
    token = _recorder.set(None)
    try:
        yield
    finally:
        _recorder.reset(token)


@contextmanager
def recording_values() -> Iterator[None]:
    """Have every `record()` in this block keep values too, but those that keep weights in the graph."""
    token = _keeps_values.set(True)
    try:
        yield
    finally:
        _keeps_values.reset(token)


EMPTY_TRACE_HINT = (
    "record() sees a model of transformers after instrument(model), and plain PyTorch with record(torch_calls=model)"
)
"""What whoever finds a recording empty is told."""

_adding = threading.Lock()  # of all traces: it is held for a moment, and a trace must cross to other processes


class Trace:
    """The attention calls of one `record()` block, by site, in call order.

    A site called again in the same block is kept as "SITE@2", "SITE@3", ...

    Raises:
        ValueError: if it is to keep both weights in the graph and values.
    """

    def __init__(self, differentiable: bool = False, values: bool = False) -> None:
        if differentiable and values:
            raise ValueError("values: expected False with differentiable, which keeps weights alone")
        self.differentiable = differentiable
        self.values = values
        self._hearing: RecordingMode | None = None  # while its `record()` block lasts
        self._began_in = current_backward()  # -1, or the backward pass in whose hook it was made
        self._calls: dict[str, AttentionCall] = {}
        self._unnamed = 0

    def add(self, source: Source, site: str | None) -> None:
        """Keep a call under its site, or under "attention.N" where it has none.

        What activation checkpointing runs a second time, for the backward pass, has been kept the first time.

        Raises:
            ValueError: within `torch.func.vmap`: its tensors are gone when it ends.
        """
        if current_backward() not in (-1, self._began_in):  # autograd is at work around this call
            return
        refuse_transformed(source.tensors())
        self._keep(source, site)

    def _keep(self, source: Source, site: str | None) -> None:
        with _adding:  # threads may have adopted this trace
            if site is None:
                site = f"attention.{self._unnamed}"
                self._unnamed += 1
            name, count = site, 1
            while name in self._calls:
                count += 1
                name = f"{site}@{count}"
            self._calls[name] = AttentionCall(name, source)

    @contextmanager
    def adopt(self) -> Iterator[Trace]:
        """Record into this trace also in the thread or task that enters: a new thread knows of no recorder.

        with record() as trace:
            def work():
                with trace.adopt():
                    model(...)
            Thread(target=work).start()

        Or start it in a copy of the context, `contextvars.copy_context().run(model, ...)`; that hears no plain
        PyTorch (`torch_calls`), as torch's modes are each thread's own.
        """
        token = _recorder.set(self)
        try:
            with run_eagerly(), self._hearing or nullcontext():
                yield self
        finally:
            _recorder.reset(token)

    def to(self, device: torch.device | str) -> Trace:
        """The same recording with its tensors on another device; what holds none is left as it is.

        What calls share, as one mask for all layers, they share there too.
        """
        there = Trace(self.differentiable, self.values)
        moved: dict[Hashable, Tensor] = {}
        for call in self:
            source = call.source
            there._keep(
                source.to(torch.device(device), moved) if isinstance(source, StoredTensors) else source, call.site
            )
        return there

    @classmethod
    def merge(cls, runs: Mapping[str, Trace]) -> Trace:
        """Several runs as one recording: "RUN/SITE" for each call of each run.

        Raises:
            ValueError: if these are no traces by name, or a name is empty or holds "." or "/", which part a site.
        """
        if not isinstance(runs, Mapping) or not all(isinstance(run, Trace) for run in runs.values()):
            raise ValueError(f"runs: expected traces by name, got {type(runs).__name__}: {runs!r:.80}")
        merged = cls()
        for name, run in runs.items():
            if not isinstance(name, str) or not name or "." in name or "/" in name:
                raise ValueError(f"runs: expected names without '.' and '/', got {name!r}")
            for call in run:
                merged._keep(call.source, f"{name}/{call.site}")
        return merged

    def __contains__(self, site: object) -> bool:
        return site in self._calls

    def __repr__(self) -> str:
        if not self._calls:
            return f"Trace(0 attention calls: {EMPTY_TRACE_HINT})"
        return f"Trace({len(self)} attention calls, {self.nbytes / 2**20:.1f} MB)"

    def summary(self) -> str:
        """A line for each call: its site, heads, queries and keys."""
        width = max((len(site) for site in self.sites), default=0)
        lines = [
            f"{call.site:<{width}}  {call.num_heads:>3} heads {call.num_queries:>6} queries {call.num_keys:>6} keys"
            for call in self
        ]
        return "\n".join([repr(self), *lines])

    @property
    def sites(self) -> tuple[str, ...]:
        """Names of the recorded calls, in call order."""
        return tuple(self._calls)

    def __getitem__(self, site: str) -> AttentionCall:
        """The call recorded under this site.

        Raises:
            KeyError: naming the sites there are.
        """
        try:
            return self._calls[site]
        except KeyError:
            there = ", ".join(self.sites) or f"none: {EMPTY_TRACE_HINT}"
            raise KeyError(f"no site {site!r} in this trace; it has {there}") from None

    def __iter__(self) -> Iterator[AttentionCall]:
        """The calls kept so far, in order; a thread that adopted this trace may add more meanwhile."""
        return iter(tuple(self._calls.values()))

    def __getstate__(self) -> dict[str, Any]:
        """What a copy has: the calls, and nothing of the block that records."""
        return {**self.__dict__, "_hearing": None, "_calls": dict(self._calls)}

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


_keeps_values: ContextVar[bool] = ContextVar("keeps_values", default=False)
_recorder: ContextVar[Trace | None] = ContextVar("recorder", default=None)


def current_trace() -> Trace | None:
    """The trace of the `record()` block around this call, in this thread or task; None where nobody listens."""
    if torch.compiler.is_compiling():
        if not must_break_graph():
            return None
        break_graph("expected no fullgraph=True where attention is recorded")
    return _recorder.get()
