"""A recorder for one block of code: its attention calls, by site.

Inside a `record()` block each call is stored as references to queries and keys after projection, never as a map; any
map, tile or thumbnail is recomputed exactly when it is requested.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.torch_internals.compiler import break_graph, must_break_graph, run_eagerly
from viz_core.torch_internals.tensors import current_backward
from viz_core.trace.arguments import check_axes, check_device, check_tensors
from viz_core.trace.call import AttentionCall
from viz_core.trace.context import set_in_block
from viz_core.trace.intervene import refuse_edits
from viz_core.trace.padding import TokenMask, check_token_mask
from viz_core.trace.references import detached, refuse_transformed
from viz_core.trace.source import Direct, Projected, Source, StoredTensors
from viz_core.trace.torch_layers import LayerTracker
from viz_core.trace.torch_mode import RecordingMode


def record_weights(
    weights: Float[Tensor, "batch heads queries keys"],
    site: str | None = None,
    values: Float[Tensor, "batch key_heads keys v"] | None = None,
    key_mask: TokenMask | None = None,
) -> None:
    """Record weights that do not come from scaled dot products (additive attention, kernels).

    Args:
        values: one for each key; stored if the recorder stores values.
        key_mask: False where a key is padding.

    Raises:
        ValueError: if weights are no floating-point tensor of four axes, or there is not a value for each key; within
            `torch.func.vmap` while a recorder is active; if an intervention names the site: only scaled dot products
            can be edited.
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
        own_values = detached(values) if trace.values and values is not None else None
        trace.add(Direct(detached(weights), own_values, key_tokens=key_mask), site)


@contextmanager
def record(
    differentiable: bool = False,
    torch_calls: bool | nn.Module = False,
    *,
    values: bool = False,
    token_mask: TokenMask | Mapping[str, TokenMask] | None = None,
    kind: Callable[[bool, bool], Trace] | None = None,
) -> Iterator[Trace]:
    """Record every attention call of this thread or task in this block.

    Compiled functions (`torch.compile`) run uncompiled in the block, for this thread alone. What activation
    checkpointing runs a second time is recorded once; for layers that are compiled as well, and with `differentiable`,
    include the backward pass in the block, as torch refuses a second run that takes another path. `torch.func.grad` is
    recorded, `torch.func.vmap` refused. What `torch.export` or `torch.jit` made is not recorded: it has no layers.

    Args:
        differentiable: compute weights whole, outside the fused kernel, and leave them in the graph, so that an output
            can be differentiated with respect to them: `call.graph_weights`. Needs much memory; for small inputs. Not
            for checkpointed layers on a GPU: their second run is in a thread of autograd, which has no recorder.
        torch_calls: also record plain PyTorch: `F.scaled_dot_product_attention`, `nn.MultiheadAttention`,
            `nn.Transformer` and its parts with their fast path, timm. Given the model itself, its layers have their
            names as sites ("encoder.0.self"); with True each call is "attention.N". Outputs are the same, bit for bit.
            A nested batch is recorded at the length of its longest member. Where a named layer computes attention by
            matrix products of its own, the result of its softmax is stored as the map.
        values: also store references to values, for `viz_core.maps.contributions`; not those of plain PyTorch's calls.
        token_mask: True where there is a token, (batch, n), or one for each stack: {"encoder": ..., "decoder": ...}.
            Only where no mask of the model says so, as for the padded targets of a decoder.
        kind: makes the trace from the arguments of `Trace`: a subclass may store fewer calls.

    Raises:
        ValueError: if torch_calls is neither a truth value nor a model, or comes with differentiable: torch's own
            kernels keep no weights in the graph; if values come with differentiable; if token_mask is not boolean
            (batch, n), or an attention in the block is of another size.
    """
    trace = (kind or Trace)(differentiable, values or (_stores_values.get() and not differentiable))
    trace.token_mask = {} if token_mask is None else check_token_mask(token_mask)
    trace._torch_mode = _torch_mode(trace, torch_calls)
    try:
        with trace.adopt():
            yield trace
    finally:
        trace._torch_mode = None


def _torch_mode(trace: Trace, torch_calls: bool | nn.Module) -> RecordingMode | None:
    """Return the mode that records plain PyTorch into a trace; None without `torch_calls`."""
    if torch_calls is False:
        return None
    if torch_calls is not True and not isinstance(torch_calls, nn.Module):
        raise ValueError(f"torch_calls: expected True, False or a model, got {type(torch_calls).__name__}")
    if trace.differentiable:
        raise ValueError("torch_calls: expected False with differentiable, as torch's own kernels keep no weights")

    def add(source: Source, site: str | None) -> None:
        if isinstance(source, Direct):
            refuse_edits(site)
        trace.add(source, site)

    layers = LayerTracker(None if torch_calls is True else torch_calls)
    return RecordingMode(lambda: current_trace() is trace, add, layers)


def no_recording() -> AbstractContextManager[None]:
    """Record nothing in this block: while a text is generated step by step, before one pass over it is recorded."""
    return set_in_block(_recorder, None)


def recording_values() -> AbstractContextManager[None]:
    """Have every `record()` in this block store values too, except with `differentiable`."""
    return set_in_block(_stores_values, True)


EMPTY_TRACE_HINT = (
    "record() sees a model of transformers after instrument(model), and plain PyTorch with record(torch_calls=model)"
)
"""Why a recording may be empty, for error messages."""

_adding = threading.Lock()  # one for all traces: a trace with a lock of its own could not be pickled


class Trace:
    """The attention calls of one `record()` block, by site, in call order.

    A site called again in the same block is "SITE@2", "SITE@3", ...

    Raises:
        ValueError: if both differentiable and values are True.
    """

    def __init__(self, differentiable: bool = False, values: bool = False) -> None:
        if differentiable and values:
            raise ValueError("values: expected False with differentiable, which keeps weights alone")
        self.differentiable = differentiable
        self.values = values
        self.token_mask: dict[str | None, TokenMask] = {}
        self._torch_mode: RecordingMode | None = None  # within its `record()` block
        self._backward = current_backward()  # -1, or the backward pass in whose hook it was made
        self._calls: dict[str, AttentionCall] = {}
        self._unnamed = 0

    def add(self, source: Source, site: str | None) -> None:
        """Add a call under its site, or under "attention.N" without one.

        What activation checkpointing runs a second time, for the backward pass, was added the first time.

        Raises:
            ValueError: within `torch.func.vmap`, whose tensors do not outlast it.
        """
        if current_backward() not in (-1, self._backward):  # a second run, for the backward pass
            return
        refuse_transformed(source.tensors())
        if self.token_mask and isinstance(source, Direct | Projected):
            batch, _, num_queries, num_keys = source.shape
            queries, keys = self.tokens_given(site, batch, num_queries, num_keys)
            source = replace(source, query_tokens=queries, key_tokens=source.key_tokens if keys is None else keys)
        self._add(source, site)

    def tokens_given(
        self, site: str | None, batch: int, num_queries: int, num_keys: int
    ) -> tuple[TokenMask | None, TokenMask | None]:
        """Return the token masks of a call's queries and keys that `record(token_mask=...)` was given.

        Raises:
            ValueError: if they are of another size.
        """
        stack, _, rest = (site or "").partition(".")
        masks = self.token_mask.get(stack, self.token_mask.get(None))
        is_cross = rest.endswith("cross")
        keys = self.token_mask.get("encoder", self.token_mask.get(None)) if is_cross else masks
        if masks is not None and not is_cross:
            masks = masks[:, -num_queries:]  # the newest steps of a decoder
        for name, tokens, n in (("queries", masks, num_queries), ("keys", keys, num_keys)):
            if tokens is not None and tokens.shape != (batch, n):
                raise ValueError(
                    f"token_mask: expected ({batch}, {n}), as site {site!r} has {name}, got {tuple(tokens.shape)}; "
                    'stacks of several lengths take one each: {"encoder": ..., "decoder": ...}'
                )
        return masks, keys

    def _add(self, source: Source, site: str | None) -> None:
        with _adding:  # threads may have adopted this trace
            if site is None:
                site = f"attention.{self._unnamed}"
                self._unnamed += 1
            name, count = site, 1
            while name in self._calls:
                count += 1
                name = f"{site}@{count}"
            self._calls[name] = AttentionCall(name, source, self._self_attention(name, source))

    def _self_attention(self, site: str, source: Source) -> AttentionCall | None:
        """Return the self-attention before a cross-attention, whose queries are those of the same tokens."""
        stack, _, rest = site.partition(".")
        if not rest.partition("@")[0].endswith("cross"):
            return None
        rows = source.shape[0], source.shape[2]
        before = (call for call in reversed(self._calls.values()) if (call.stack, call.kind) == (stack, "self"))
        return next((call for call in before if (call.source.shape[0], call.num_queries) == rows), None)

    def text(self, row: int) -> Trace:
        """Return the recording of one text of the batch, without its padding: each call's `AttentionCall.text`.

        Raises:
            IndexError: if the batch has no such row.
        """
        alone = Trace(self.differentiable, self.values)
        for call in self:
            alone._add(call.text(row).source, call.site)
        return alone

    @contextmanager
    def adopt(self) -> Iterator[Trace]:
        """Record into this trace in another thread or task too: a new thread has no recorder.

        with record() as trace:
            def work():
                with trace.adopt():
                    model(...)
            Thread(target=work).start()

        Or start it in a copy of the context, `contextvars.copy_context().run(model, ...)`; that does not record plain
        PyTorch (`torch_calls`), as each thread has its own modes of torch.
        """
        with set_in_block(_recorder, self), run_eagerly(), self._torch_mode or nullcontext():
            yield self

    def to(self, device: torch.device | str) -> Trace:
        """Return the same recording with its tensors on another device.

        Tensors that calls share, as one mask for all layers, are shared there too.
        """
        copied = Trace(self.differentiable, self.values)
        copied.token_mask = {stack: tokens.to(device) for stack, tokens in self.token_mask.items()}
        copies: dict[Hashable, Tensor] = {}
        for call in self:
            source = call.source
            if isinstance(source, StoredTensors):
                source = source.to(torch.device(device), copies)
            copied._add(source, call.site)
        return copied

    @classmethod
    def merge(cls, runs: Mapping[str, Trace]) -> Trace:
        """Return several runs as one recording: "RUN/SITE" for each call of each run.

        Raises:
            ValueError: if runs are not traces by name, or a name is empty or contains "." or "/", the separators of a
                site.
        """
        if not isinstance(runs, Mapping) or not all(isinstance(run, Trace) for run in runs.values()):
            raise ValueError(f"runs: expected traces by name, got {type(runs).__name__}: {runs!r:.80}")
        merged = cls()
        for name, run in runs.items():
            if not isinstance(name, str) or not name or "." in name or "/" in name:
                raise ValueError(f"runs: expected names without '.' and '/', got {name!r}")
            for call in run:
                merged._add(call.source, f"{name}/{call.site}")
        return merged

    def __contains__(self, site: object) -> bool:
        return site in self._calls

    def __repr__(self) -> str:
        if not self._calls:
            return f"Trace(0 attention calls: {EMPTY_TRACE_HINT})"
        return f"Trace({len(self)} attention calls, {self.nbytes / 2**20:.1f} MB)"

    def summary(self) -> str:
        """Return a line for each call: its site, heads, queries and keys."""
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

    def __getitem__(self, site: str | int) -> AttentionCall:
        """Return the call recorded under this site, or the call of this number.

        Raises:
            KeyError: naming the sites there are.
            IndexError: if there are fewer calls.
        """
        if isinstance(site, int):
            return self._calls[self.sites[site]]
        try:
            return self._calls[site]
        except KeyError:
            sites = ", ".join(self.sites) or f"none: {EMPTY_TRACE_HINT}"
            raise KeyError(f"no site {site!r} in this trace; it has {sites}") from None

    def __iter__(self) -> Iterator[AttentionCall]:
        """Iterate over the calls so far, in order; a thread that adopted this trace may add more."""
        return iter(tuple(self._calls.values()))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy: the calls, without the mode of the block that records."""
        return {**self.__dict__, "_torch_mode": None, "_calls": dict(self._calls)}

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def nbytes(self) -> int:
        """Bytes of the storages that this recording refers to, each counted once."""
        storages = {}
        for call in self:
            for tensor in call.source.tensors():
                storage = tensor.untyped_storage()
                storages[storage.data_ptr()] = storage.nbytes()
        return sum(storages.values())


_stores_values: ContextVar[bool] = ContextVar("stores_values", default=False)
_recorder: ContextVar[Trace | None] = ContextVar("recorder", default=None)


def current_trace() -> Trace | None:
    """Return the trace of the `record()` block around this call, in this thread or task; None without one."""
    if torch.compiler.is_compiling():
        if not must_break_graph():
            return None
        break_graph("expected no fullgraph=True where attention is recorded")
    return _recorder.get()
