"""Edit heads of a running model for one block of code."""

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache

import torch
from torch import nn

from viz_core.torch_internals import in_graph, refuse_checkpoint, without_graphs
from viz_core.trace.arguments import described
from viz_core.trace.edits import Edit, Edits, Positions, QueryPositions
from viz_core.trace.output_edits import StateEdit
from viz_core.trace.passes import counting_passes, set_in_block
from viz_core.trace.source import Projected
from viz_core.trace.torch_edits import EditingMode
from viz_core.trace.torch_layers import edits_of_call, tracker_for
from viz_core.trace.weights import TokenMask, text_positions


@contextmanager
def intervene(edits: Mapping[str, Edit | Sequence[Edit]], torch_calls: bool | nn.Module = False) -> Iterator[None]:
    """Edit heads of every attention call of this thread or task in this block.

    with intervene({"decoder.2.cross": off(3), "encoder.0.self": [sharpen(1, 0.5), knock_out(2, query=4, key=0)]}):
        translator.translate("He is calm.")

    Heads that are not named are the same, bit for bit; recorded maps are those of the edited heads. Several edits of a
    head are applied in order, and those of a nested block after those of the outer one. Sites are named as in a trace;
    layers without a name are "attention.0", "attention.1", ... in the order of this block. `patch_state` and `zero`
    edit states, named as in `Trace.states`.

    Positions count from the first token of each text: keys that no query of a text may attend to are its padding. They
    do so step by step too, with a cache that holds the whole text; a cache that drops keys or overwrites them (a
    sliding window, a static cache) shifts them. Queries of cross-attention have the positions of the self-attention
    before it.

    Args:
        torch_calls: edit plain PyTorch too (`F.scaled_dot_product_attention`, `nn.MultiheadAttention` and what is built
            of it): the model, whose layers then have their names, or True. Torch's fast paths are not used in this
            block; without them rounding differs, and outputs at padding. Gradients reach the values of an edited head,
            not its queries and keys.

    Raises:
        ValueError: if torch_calls is neither a boolean nor a model; if edits are not edits by site, or a site has no
            such head; where a layer runs under `torch.compile`, or an edited one under activation checkpointing; at the
            end of the block, if a site was never called. It names the sites that were.
    """
    layers = tracker_for(torch_calls)
    block = _Block(edits, None if layers is None else EditingMode(edits_of, is_editing, layers))
    with (
        set_in_block(_blocks, (*_blocks.get(), block)),
        set_in_block(_self_queries, None),
        set_in_block(edits_of_call, None),
        counting_passes(),
        without_graphs(),
        block.torch_mode or nullcontext(),
    ):
        yield
    block.check_all_called()


def edits_at(
    site: str | None,
    shape: tuple[int, int, int, int],
    causal: bool,
    tokens: Callable[[], TokenMask | None],
    device: torch.device | None = None,
) -> Edits | None:
    """Return the edits of this call by the blocks around it; None without any. ValueError if one does not fit the call.

    Args:
        shape: batch, heads, queries and keys.
        tokens: gives True where a key is a token; only called if a position counts.
    """
    blocks = _current(site)
    if not blocks:
        return None
    num_queries, num_keys = shape[2:]
    kind = None if site is None else site.rsplit(".", 1)[-1]
    keys = cache(lambda: text_positions(tokens(), num_keys, device))
    before = _self_queries.get()
    if kind == "cross" and before is not None:
        queries = before
    elif num_queries == num_keys or (num_queries < num_keys and (causal or kind == "self")):
        queries = cache(lambda: keys()[:, num_keys - num_queries :])
    else:
        queries = cache(lambda: text_positions(None, num_queries, device))
    if kind != "cross":
        _self_queries.set(queries)
    found = tuple(edit for block in blocks for edit in block.at(site))
    if not found:
        return None
    refuse_checkpoint(site)
    for edit in found:
        try:
            edit.check(shape)
        except ValueError as error:
            raise ValueError(f"site {site!r}: {error}") from None
    own = queries() if queries().shape[-1] == num_queries else text_positions(None, num_queries, device)
    return Edits(found, Positions(own.to(device), keys()))


def edits_of(source: Projected, site: str | None) -> Edits | None:
    """Return the edits of a call of which this is recorded; ValueError as of `edits_at`."""
    return edits_at(site, source.shape, source.causal, lambda: source.tokens, source.queries.device)


def state_edits_at(name: str) -> tuple[StateEdit, ...]:
    """Return the edits of a state by the blocks around this call; ValueError if one is an edit of heads."""
    found = tuple(edit for block in _current(name) if block.edits_states for edit in block.at(name, is_state=True))
    if found:
        refuse_checkpoint(name)
    if not all(isinstance(edit, StateEdit) for edit in found):
        raise ValueError(f"{name}: expected an edit of a state, such as zero() or patch_state(value)")
    return found  # type: ignore[return-value]


def edits_states() -> bool:
    """Whether an `intervene` block around this call edits states."""
    return any(block.edits_states for block in _current())


def edits_states_in(layer: str, around: Collection[str]) -> bool:
    """Whether an `intervene` block around this call edits states within a layer, and not only those around it."""
    names = (name for block in _current() if block.edits_states for name in block._edits)
    return any(name.startswith(f"{layer}.") and name.removeprefix(f"{layer}.") not in around for name in names)


def refuse_edits(
    site: str | None,
    kind: type[Edit] = Edit,
    expected: str = "scaled dot-product attention, whose heads alone can be edited",
) -> None:
    """Raise ValueError if a call has an edit of a kind that its attention does not allow."""
    if any(isinstance(edit, kind) for block in _current(site) for edit in block.at(site)):
        raise ValueError(f"site {site!r}: expected {expected}")


def is_editing() -> bool:
    """Whether any `intervene` block around this call has an edit."""
    return any(own for block in _current() for own in block._edits.values())


def without_edits() -> AbstractContextManager[None]:
    """Leave every call in this block as it is: its caller applies the edits."""
    return set_in_block(_blocks, ())


class _Block:
    """The edits of one `intervene` block, and the sites called in it."""

    def __init__(self, edits: Mapping[str, Edit | Sequence[Edit]], torch_mode: EditingMode | None) -> None:
        if not isinstance(edits, Mapping):
            raise ValueError(
                f"edits: expected edits by site, such as {{'encoder.0.self': off(3)}}, got {described(edits)}"
            )
        self._edits = {site: _as_tuple(site, given) for site, given in edits.items()}
        self.edits_states = any(isinstance(edit, StateEdit) for own in self._edits.values() for edit in own)
        self.torch_mode = torch_mode
        self._called: set[str] = set()
        self._applied: set[tuple[str, Edit]] = set()
        self._unnamed = itertools.count()

    def at(self, site: str | None, is_state: bool = False) -> tuple[Edit, ...]:
        """Return the edits of a site or a state, and note that it was called."""
        name = f"attention.{next(self._unnamed)}" if site is None else site
        self._called.add(name)
        found = self._edits.get(name, ())
        if name.endswith("cross"):  # the name of a call, and of what it adds to the stream
            found = tuple(edit for edit in found if isinstance(edit, StateEdit) == is_state)
        self._applied.update((name, edit) for edit in found)
        return found

    def check_all_called(self) -> None:
        edits = self._edits.items()
        applied = {name for name, own in edits if all((name, edit) in self._applied for edit in own)}
        unknown = sorted(self._edits.keys() - (self._called & applied))
        if unknown:
            ran = set(unknown) & (set() if self.torch_mode is None else set(self.torch_mode.layers.used))
            if ran:
                raise ValueError(
                    f"{', '.join(sorted(ran))}: expected calls of torch's attention functions, whose heads alone can "
                    "be edited, got matrix products of the layer's own, or windows; use F.scaled_dot_product_attention"
                )
            called = ", ".join(sorted(self._called)) or "none"
            raise ValueError(f"no attention or state at {', '.join(unknown)} in this block; there was {called}")


def _as_tuple(site: str, given: Edit | Sequence[Edit]) -> tuple[Edit, ...]:
    listed = (given,) if isinstance(given, Edit) else tuple(given) if isinstance(given, Sequence) else (given,)
    for edit in listed:
        if not isinstance(edit, Edit):
            raise ValueError(f"site {site!r}: expected edits such as off(3), got {type(edit).__name__}")
    return listed


_blocks: ContextVar[tuple[_Block, ...]] = ContextVar("interventions", default=())
_self_queries: ContextVar[Callable[[], QueryPositions] | None] = ContextVar("self_queries", default=None)


def _current(site: str | None = None) -> tuple[_Block, ...]:
    return () if in_graph(site) else _blocks.get()
