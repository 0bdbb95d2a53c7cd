"""The attention calls of one recorded block, by site."""

import threading
from collections import UserDict
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from viz_core.torch_internals import in_graph, refuse_second_run, refuse_transformed, without_graphs
from viz_core.trace.arguments import index_range
from viz_core.trace.call import AttentionCall
from viz_core.trace.passes import counting_passes, set_in_block
from viz_core.trace.source import Direct, Projected, Source, StoredTensors, with_texts
from viz_core.trace.steps import Beams, join_steps
from viz_core.trace.verification import Verification
from viz_core.trace.weights import TokenMask

EMPTY_TRACE_HINT = (
    "record() sees a model of transformers after instrument(model), and plain PyTorch with record(torch_calls=model)"
)
"""Why a recording may be empty, for error messages."""

_adding = threading.Lock()  # one for all traces: a trace with a lock of its own could not be pickled


@dataclass(frozen=True, eq=False)
class _State(StoredTensors):
    state: Tensor


class States(UserDict[str, Any]):
    """Recorded states (batch, n, d) by name, such as "decoder.2.residual".

    KeyError names those there are; ValueError is for a state that was changed in place after it was recorded.
    """

    def __setitem__(self, name: str, state: Tensor) -> None:
        self.data[name] = _State(state)

    def __getitem__(self, name: str) -> Tensor:
        """Return a state; KeyError or ValueError as above."""
        if name not in self.data:
            known = ", ".join(self) or "none: record(states=True) stores them, of our models and after instrument()"
            raise KeyError(f"no state {name!r} in this trace; it has {known}")
        stored: _State = self.data[name]
        stored.check_unchanged()
        return stored.state


class Trace:
    """The attention calls of one `record()` block, by site, in call order.

    A site called again in the same block is "SITE@2", "SITE@3", ...; so is a state.

    Attributes:
        states: of `record(states=True)`: "STACK.embedding" enters the first layer; "STACK.I.attention", "STACK.I.cross"
            and "STACK.I.mlp" are what the parts of layer I add to the residual stream ("mixer": another part), before a
            norm that comes last; "STACK.I.residual" is the stream after the layer, "STACK.I.residual_attention" that
            after its attention; "STACK.I.neurons" the input of the last matrix of its feed-forward net, where its
            output is added as it is. Of a layer whose stream cannot be followed, "residual" alone is recorded.
        verification: how the model's output with the recording compares with that without it, of transformers' models;
            None of others.

    Raises:
        ValueError: if both differentiable and values are True.
    """

    def __init__(self, differentiable: bool = False, values: bool = False) -> None:
        if differentiable and values:
            raise ValueError("values: expected False with differentiable, which keeps weights alone")
        self.differentiable, self.values = differentiable, values
        self.keeps_states: frozenset[str] = frozenset()  # kinds of states: the last part of their names
        self.keeps_calls = True
        self.states = States()
        self.token_mask: dict[str | None, TokenMask] = {}
        self.torch_mode: TorchFunctionMode | None = None  # within its `record()` block
        self.verification: Verification | None = None
        self.value_errors: dict[str, float] | None = None  # of weights times values; measured if it is a dictionary
        self.may_be_empty = False  # calls were discarded, or the model has no attention
        self._calls: dict[str, AttentionCall] = {}
        self._unnamed = 0

    def add(self, source: Source, site: str | None) -> None:
        """Add a call under its site, or under "attention.N" without one.

        Raises:
            ValueError: within `torch.func`, whose tensors do not outlast it, and within a backward pass, where
                activation checkpointing runs a layer again.
        """
        refuse_second_run(site)
        refuse_transformed(source.tensors(), site)
        if self.token_mask and isinstance(source, Direct | Projected):
            batch, _, num_queries, num_keys = source.shape
            queries, keys = self.tokens_given(site, batch, num_queries, num_keys)
            source = replace(source, query_tokens=queries, key_tokens=source.key_tokens if keys is None else keys)
        self.add_joined(with_texts(source, site), site)

    def add_state(self, name: str, state: Tensor) -> None:
        """Add a state under its name, or "NAME@2" for a layer that is called again. ValueError within `torch.func`."""
        refuse_transformed([state], name)
        count = 1 + sum(known.partition("@")[0] == name for known in self.states) if name in self.states else 1
        self.states[name if count == 1 else f"{name}@{count}"] = state.detach()

    def tokens_given(
        self, site: str | None, batch: int, num_queries: int, num_keys: int
    ) -> tuple[TokenMask | None, TokenMask | None]:
        """Return the masks of queries and keys that `record(token_mask=...)` got. ValueError if they do not fit."""
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

    def add_joined(self, source: Source, site: str | None) -> None:
        """Add a call of a recording that is over, as it is."""
        with _adding:  # threads may have adopted this trace
            if site is None:
                site = f"attention.{self._unnamed}"
                self._unnamed += 1
            name, count = site, 1
            while name in self._calls:
                count += 1
                name = f"{site}@{count}"
            self._calls[name] = AttentionCall(name, source, self._self_attention(name, source))
            last_site.set(name)

    def drop(self, site: str) -> None:
        """Forget a call."""
        with _adding:
            del self._calls[site]

    def put(self, site: str, source: Source) -> None:
        """Replace what is stored of a call."""
        with _adding:
            self._calls[site] = replace(self._calls[site], source=source)

    def discard(self) -> None:
        """Forget all calls and states: they are not those of the model."""
        with _adding:
            self._calls.clear()
            self.states.data.clear()
            self.may_be_empty = True

    def _self_attention(self, site: str, source: Source) -> AttentionCall | None:
        """Return the self-attention before a cross-attention, whose queries are those of the same tokens."""
        stack, _, rest = site.partition(".")
        if not rest.partition("@")[0].endswith("cross"):
            return None
        rows = source.shape[0], source.shape[2]
        before = (call for call in reversed(self._calls.values()) if (call.stack, call.kind) == (stack, "self"))
        return next((call for call in before if (call.source.shape[0], call.num_queries) == rows), None)

    def text(self, row: int, part: int | None = None) -> "Trace":
        """Return the recording of one text of the batch, without its padding: each call's `AttentionCall.text`, and
        the states of its tokens; no states of a stack whose calls have another batch, such as windows of a picture.

        Args:
            part: which text of a row that holds several, one after another.

        Raises:
            IndexError: if the batch has no such row, or the row no such part.
            ValueError: without part, if the row holds several texts.
        """
        alone = Trace(self.differentiable, self.values)
        alone.verification = self.verification
        spans: dict[tuple[str, int], range] = {}
        batches: dict[str, set[int]] = {}
        for call in self:
            alone.add_joined(call.text(row, part=part).source, call.site)
            batches.setdefault(call.stack, set()).add(call.source.shape[0])
            spans.setdefault((call.stack, call.num_queries), call.spans(row, part=part)[0])
        for name, state in self.states.items():
            if batches.get(stack := name.partition(".")[0], {len(state)}) != {len(state)}:
                continue
            own = state[index_range(row, len(state), "row")[0]][None]
            span = spans.get((stack, own.shape[1])) if own.dim() == 3 else None
            alone.states[name] = own if span is None else own[:, span.start : span.stop]
        return alone

    def stitched(self, beams: Beams | None = None) -> "Trace":
        """Return the recording with the steps of a generation as one call for each site, of all its queries and keys.

        A site called again is a step if its first keys are those of the text so far: with any cache, and where words
        were rejected again (assisted decoding). In cross-attention the keys are the same. Other calls stay as they are.
        So it is with states.

        Args:
            beams: of a beam search: `beam_indices` of `generate(return_dict_in_generate=True, output_scores=True)`, or
                some of its rows. They are the texts that were written, not the rows of the last step.

        Raises:
            ValueError: if a step cannot be joined to those before: where rows changed places, beams are needed.
        """
        found = Trace()
        found.verification = self.verification
        calls, states = join_steps(self, self.states, beams)
        for source, site in calls:
            found.add_joined(source, site)
        for name, state in states:
            found.add_state(name, state)
        return found

    @contextmanager
    def adopt(self) -> "Iterator[Trace]":
        """Record into this trace in another thread or task too: a new thread has no recorder.

        with record() as trace:
            def work():
                with trace.adopt():
                    model(...)
            Thread(target=work).start()

        Or start it in a copy of the context, `contextvars.copy_context().run(model, ...)`; that does not record plain
        PyTorch (`torch_calls`), as each thread has its own modes of torch.
        """
        with set_in_block(recorder, self), counting_passes(), without_graphs(), self.torch_mode or nullcontext():
            yield self

    def to(self, device: torch.device | str) -> "Trace":
        """Return the same recording with its tensors on another device.

        Tensors that calls share, as one mask for all layers, are shared there too.
        """
        copied = Trace(self.differentiable, self.values)
        copied.verification = self.verification
        copied.token_mask = {stack: tokens.to(device) for stack, tokens in self.token_mask.items()}
        copies: dict[Hashable, Tensor] = {}
        for call in self:
            source = call.source
            if isinstance(source, StoredTensors):
                source = source.to(torch.device(device), copies)
            copied.add_joined(source, call.site)
        copied.states.update((name, state.to(device)) for name, state in self.states.items())
        return copied

    @classmethod
    def merge(cls, runs: "Mapping[str, Trace]") -> "Trace":
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
                merged.add_joined(call.source, f"{name}/{call.site}")
            merged.states.update((f"{name}/{state}", value) for state, value in run.states.items())
        return merged

    def __contains__(self, site: object) -> bool:
        return site in self._calls

    def __repr__(self) -> str:
        if not self._calls:
            return f"Trace(0 attention calls: {EMPTY_TRACE_HINT})"
        verified = "" if self.verification is None else f", {self.verification}"
        return f"Trace({len(self)} attention calls, {self.nbytes / 2**20:.1f} MB{verified})"

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
        return {**self.__dict__, "torch_mode": None, "_calls": dict(self._calls)}

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def nbytes(self) -> int:
        """Bytes of the storages that this recording refers to, each counted once."""
        storages, sources = {}, (*(call.source for call in self), *self.states.data.values())
        for tensor in (tensor for source in sources for tensor in source.tensors()):
            storage = tensor.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
        return sum(storages.values())


recorder: ContextVar[Trace | None] = ContextVar("recorder", default=None)
"""The trace that this thread or task records into."""

last_site: ContextVar[str] = ContextVar("last_site", default="")
"""The site of the call that this thread or task recorded last."""


def current_trace(site: str | None = None) -> Trace | None:
    """Return the trace of the `record()` block around this call of attention, in this thread or task; None without."""
    trace = None if in_graph(site) else recorder.get()
    return trace if trace is None or trace.keeps_calls else None
