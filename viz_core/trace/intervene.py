"""Heads of a running model edited, for one block of code: who names them, and which call is theirs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import torch
from torch import nn

from viz_core.torch_internals.compiler import break_graph, must_break_graph, run_eagerly
from viz_core.trace.arguments import described
from viz_core.trace.edits import Edit, Edits
from viz_core.trace.torch_edits import EditingMode
from viz_core.trace.torch_layers import edits_of_call


@contextmanager
def intervene(edits: Mapping[str, Edit | Sequence[Edit]], torch_calls: bool | nn.Module = False) -> Iterator[None]:
    """Edit heads of every attention call in this block, by this thread or task and nobody else's.

    with intervene({"decoder.2.cross": off(3), "encoder.0.self": [sharpen(1, 0.5), knock_out(2, query=4, key=0)]}):
        translator.translate("He is calm.")

    Heads that are not named come out bit for bit as without; what is recorded meanwhile are the maps of the edited
    heads. Several edits of a head are applied in order, and those of a block within another after the outer one's.
    A site is named as in a trace; layers without a name are "attention.0", "attention.1", ... in this block's order.

    Queries count from the first of the text, also step by step with a cache that holds all of it; a cache that forgets
    or is written over (a sliding window, a static one) shifts them. A query of cross-attention stands where those of
    the self-attention before it stand.

    Args:
        torch_calls: edit plain PyTorch too (`F.scaled_dot_product_attention`, `nn.MultiheadAttention` and what is built
            of it): the model, whose layers then have their names, or True. Torch's fast paths are left in this block,
            so that what they round otherwise, or answer with zeros at padding, may differ. Gradients reach the values
            of an edited head, not its queries and keys.

    Raises:
        ValueError: if torch_calls is neither a truth value nor a model; if what is given is no edit, or a head is none
            of the site's; at the end of the block, if a site was never met. It names those there are.
    """
    block, hearing = _Block(edits), _hearing(torch_calls)
    outer = _blocks.get()
    blocks, place, heard = _blocks.set((*outer, block)), _first_query.set(0), edits_of_call.set(None)
    try:
        with run_eagerly(), hearing:
            yield
    finally:
        edits_of_call.reset(heard)
        _first_query.reset(place)
        _blocks.reset(blocks)
    block.check_met()


def edits_at(site: str | None, num_heads: int, num_queries: int, num_keys: int, causal: bool) -> Edits | None:
    """What the blocks around this call do to it; None where that is nothing.

    Raises:
        ValueError: if one names a head that there is not.
    """
    blocks = _current()
    if not blocks:
        return None
    kind = None if site is None else site.rsplit(".", 1)[-1]
    if kind == "cross":
        start = _first_query.get()
    else:
        start = max(0, num_keys - num_queries) if causal or kind == "self" else 0
        _first_query.set(start)
    found = tuple(edit for block in blocks for edit in block.at(site))
    for edit in found:
        if edit.heads is not None and max(edit.heads) >= num_heads:
            raise ValueError(f"site {site!r}: expected heads 0 to {num_heads - 1}, got {edit.heads}")
    return Edits(found, start) if found else None


def refuse_edits(site: str | None) -> None:
    """Refuse to go on where somebody edits a call whose weights come from elsewhere than scaled dot products.

    Raises:
        ValueError: naming the site.
    """
    if any(block.at(site) for block in _current()):
        raise ValueError(f"site {site!r}: expected scaled dot-product attention, whose heads alone can be edited")


def is_editing() -> bool:
    """Whether anything is edited around this call, whatever and wherever."""
    return bool(_current())


@contextmanager
def no_editing() -> Iterator[None]:
    """What torch's kernel is asked for here is edited by who asks, and by nobody else."""
    token = _asked_by_us.set(True)
    try:
        yield
    finally:
        _asked_by_us.reset(token)


def _hearing(torch_calls: bool | nn.Module) -> AbstractContextManager[Any]:
    """What edits plain PyTorch, where that is wanted and nobody around does."""
    if torch_calls is False:
        return nullcontext()
    if torch_calls is not True and not isinstance(torch_calls, nn.Module):
        raise ValueError(f"torch_calls: expected True, False or a model, got {type(torch_calls).__name__}")
    return EditingMode(
        lambda source, site: edits_at(site, *source.shape[1:], source.causal),
        lambda: not _asked_by_us.get(),
        None if torch_calls is True else torch_calls,
    )


class _Block:
    """What one `intervene` block does, and where it has been."""

    def __init__(self, edits: Mapping[str, Edit | Sequence[Edit]]) -> None:
        if not isinstance(edits, Mapping):
            raise ValueError(
                f"edits: expected edits by site, such as {{'encoder.0.self': off(3)}}, got {described(edits)}"
            )
        self._edits = {site: _listed(site, given) for site, given in edits.items()}
        self._met: set[str] = set()
        self._unnamed = itertools.count()

    def at(self, site: str | None) -> tuple[Edit, ...]:
        """The edits of a site, which is thereby met."""
        name = f"attention.{next(self._unnamed)}" if site is None else site
        self._met.add(name)
        return self._edits.get(name, ())

    def check_met(self) -> None:
        unknown = sorted(self._edits.keys() - self._met)
        if unknown:
            there = ", ".join(sorted(self._met)) or "none"
            raise ValueError(f"no attention at {', '.join(unknown)} in this block; there was {there}")


def _listed(site: str, given: Edit | Sequence[Edit]) -> tuple[Edit, ...]:
    listed = (given,) if isinstance(given, Edit) else tuple(given) if isinstance(given, Sequence) else (given,)
    for edit in listed:
        if not isinstance(edit, Edit):
            raise ValueError(f"site {site!r}: expected edits such as off(3), got {type(edit).__name__}")
    return listed


_blocks: ContextVar[tuple[_Block, ...]] = ContextVar("interventions", default=())
_asked_by_us: ContextVar[bool] = ContextVar("asked_by_us", default=False)
_first_query: ContextVar[int] = ContextVar("first_query", default=0)  # of the self-attention last met


def _current() -> tuple[_Block, ...]:
    if torch.compiler.is_compiling():
        if not must_break_graph():
            return ()
        break_graph("expected no fullgraph=True where heads are edited")
    return _blocks.get()
