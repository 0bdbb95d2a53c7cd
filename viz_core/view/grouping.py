"""Groups of maps for an attention view, from recorded calls or plain weights."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from PIL.Image import Image
from torch import Tensor

from viz_core.trace import AttentionCall
from viz_core.trace.one_text import OneText
from viz_core.trace.source import Direct
from viz_core.view.map_group import MapGroup, MapPicture

Names = Sequence[object] | Mapping[str, Sequence[object]]
"""Names of tokens: texts, or tokens of a run of a Hugging Face model; of one stack, or by the names of several."""

Tokens = Names | Tensor | np.ndarray | Mapping[str, Any]
"""Names of tokens, or what holds them: ids, what a tokenizer made of a text."""

_EAGER = "models of Hugging Face return weights only with attn_implementation='eager' and output_attentions=True"
_STEPS = "generate() returns a tuple for each step: give one of them"


def group_calls(
    calls: Iterable[AttentionCall], tokens: Names | None = None, row: int = 0, keys: Names | None = None
) -> tuple[MapGroup, ...]:
    """Group the calls of a trace by stack, kind and size of map.

    Where tokens are not as many as the maps are large, positions are shown instead.

    Args:
        calls: a trace, or some of its calls.
        tokens: queries of each stack ("encoder", "decoder"), which are its keys too; keys of its cross-attention are
            the tokens of the other stack.
        row: which row of the batch.
        keys: keys of each stack's self-attention where they are others than these (what a decoder has read, while its
            queries are what it writes); of one stack, keys of whatever kind.
    """
    found = [(group[0].stack, group[0].kind, group) for group in calls_of_a_size(calls)]
    stacks = list(dict.fromkeys([*(tokens if isinstance(tokens, Mapping) else ()), *(stack for stack, *_ in found)]))
    groups = []
    for number, (stack, kind, members) in enumerate(found):
        source = other_stack(stack, stacks) if kind == "cross" else stack
        # Of one sequence nobody knows whether it is what cross-attention looks at.
        known = kind != "cross" or (source != stack and isinstance(tokens, Mapping))
        these = _of(tokens, source) if known else None
        other = _of(keys, stack) if kind != "cross" or not isinstance(keys, Mapping) else None
        groups.append(
            MapGroup(
                re.sub(r"[^a-z0-9]+", "-", f"{number} {kind}".lower())[:32].strip("-"),  # for addresses
                f"{stack} {kind}" if stack != kind else stack,
                stack,
                source,
                _named(members[0].num_queries, _of(tokens, stack)),
                key_names(members[0], other, these, beside=_of(tokens, other_stack(stack, stacks))),
                tuple(members),
                row,
            )
        )
        if len(groups[-1].query_tokens) > 1:  # else it may be a step, whose own keys are not known
            groups += joined_parts(
                groups[-1], "self part ({share})", "cross part ({share})", other_stack(stack, stacks)
            )
    return tuple(groups)


def joined_parts(group: MapGroup, own: str, other: str, source: str) -> tuple[MapGroup, ...]:
    """Return two more groups of maps whose softmax is over two sequences, a part each; none for other maps.

    Weights of a part are as they are, and do not sum to 1: labels give the mean share of a row.

    Args:
        own, other: labels of the two parts, with {share}.
        source: what the keys of the other part are.
    """
    count = len(group.query_tokens)
    if not all(getattr(call.source, "joins", False) for call in group.calls):
        return ()
    if any(bool(call.weights(queries=0)[..., 1:count].any()) for call in group.calls):
        return ()  # of a step: which keys are its own is not known
    parts = list[MapGroup]()
    for name, label, keys in (("self", own, range(count)), ("cross", other, range(count, len(group.key_tokens)))):
        sites = [f"{call.site.rpartition('.')[0]}.{name}" for call in group.calls]
        cut = [OneText(call.source, group.row, range(count), keys) for call in group.calls]
        calls = tuple(map(AttentionCall, sites, cut))
        share = sum(float(call.weights().sum(dim=-1).mean()) for call in calls) / len(calls)
        parts.append(
            replace(
                group,
                id=f"{group.id[:26]}-{name}",
                label=label.format(share=f"{share:.0%}"),
                key_tokens=group.key_tokens[keys.start : keys.stop],
                key_words=None,
                keys_label=source if name == "cross" else group.keys_label,
                calls=calls,
                row=0,
                rows_sum_to_one=False,
            )
        )
    return tuple(parts)


def with_picture(groups: Sequence[MapGroup], picture: Image) -> tuple[MapGroup, ...]:
    """Return groups of which those of deformable attention lie over a picture; ValueError if none is.

    Their keys are places of feature maps: "2: 3, 5" is row 3 and column 5 of the second one.
    """
    pixels, found, some = np.asarray(picture.convert("RGB")), list[MapGroup](), False
    for group in groups:
        levels = {getattr(call.source, "sizes", ()) for call in group.calls}
        if len(levels) == 1 and (sizes := levels.pop()):
            some = True
            names = (f"{i + 1}: {name}" for i, size in enumerate(sizes) for name in patch_names(size))
            image = MapPicture(pixels, sizes[0], of_queries=False, levels=sizes)
            group = replace(group, key_tokens=tuple(names), image=image)
        found.append(group)
    if not some:
        raise ValueError("picture: expected deformable attention, whose points lie over one; got none")
    return tuple(found)


def patch_names(grid: tuple[int, int]) -> Iterator[str]:
    """Yield row and column of each patch, from 1: "1, 1", "1, 2", ..."""
    return (f"{row}, {column}" for row in range(1, grid[0] + 1) for column in range(1, grid[1] + 1))


def read_tokens(name: str, given: object, row: int = 0) -> Any:
    """Read names of tokens from ids or from the output of a fast tokenizer.

    Args:
        name: of the argument.
        given: a sequence of texts or ids; a tensor or array of them, of one axis or with the batch before it; a
            `BatchEncoding` or an `Encoding`; or any of these by the names of stacks.
        row: which row of the batch.
    """
    if hasattr(given, "tokens"):
        return given.tokens(row) if callable(given.tokens) else given.tokens
    if isinstance(given, Mapping):
        return {stack: read_tokens(name, each, row) for stack, each in given.items()}
    if isinstance(given, Tensor | np.ndarray):
        given = given[row].tolist() if given.ndim == 2 and row < len(given) else given.tolist()
    if given is not None and (isinstance(given, str | bytes) or not isinstance(given, Sequence)):
        raise ValueError(f"{name}: expected a sequence of texts or ids, got {type(given).__name__} {given!r:.80}")
    return given


def check_tokens(calls: Sequence[AttentionCall], tokens: Names | None, keys: Names | None) -> None:
    """Check that names fit the maps."""
    sizes: dict[str, set[int]] = {}
    for call in calls:
        sizes.setdefault(call.stack, set()).update((call.num_queries, call.num_keys))
    unseen = (call for call in calls if call.kind == "cross" and other_stack(call.stack, list(sizes)) == call.stack)
    unrecorded = {call.num_keys for call in unseen}  # of a stack that was not recorded
    for name, given in (("tokens", tokens), ("keys", keys)):
        if given is None:
            continue
        if not isinstance(given, Mapping):
            if len(sizes) > 1:
                example = ", ".join(f'"{stack}": [...]' for stack in sizes)
                raise ValueError(f"{name}: expected those of each stack, {{{example}}}, got one sequence")
            given = dict.fromkeys(sizes, given)
        for stack, texts in given.items():
            there = sizes.get(stack, unrecorded)
            if not there:
                raise ValueError(f"{name}: expected stacks {', '.join(sizes)}, got {stack!r}")
            if len(texts) not in there:
                wanted = " or ".join(map(str, sorted(there)))
                raise ValueError(f"{name}: expected a sequence of {wanted} for {stack}, got {len(texts)}")


def weight_calls(what: object, cross: bool = False, is_batch: bool = False) -> tuple[AttentionCall, ...]:
    """Record plain weights as calls, one for each layer.

    Args:
        what: a tensor or array of two axes (a map), three (heads of a layer) or four (batch, heads, queries, keys); or
            a sequence of them, one a layer. A row of NaN, which some kernels give where a query sees nothing, counts
            as zeros.
        cross: whether queries and keys are different sequences.
        is_batch: whether the first of four axes is known to be texts, not layers.
    """
    layers: list[object] = []
    if hasattr(what, "shape"):
        layers = [what]
        if len(what.shape) == 4 and what.shape[0] > 1 and not is_batch:
            raise ValueError(
                f"what: an array of shape {tuple(what.shape)} may be {what.shape[0]} layers or as many texts; give "
                "list(array) for layers, or row=0 for the first text of a batch"
            )
    elif isinstance(what, Sequence) and not isinstance(what, str):
        layers = list(what)
    if not layers:
        hint = "; give one of its tuples of attentions" if isinstance(what, Mapping) else ""
        hint = f" of nothing; {_EAGER}" if isinstance(what, tuple) else hint
        hint = f"; {_EAGER}" if what is None else hint
        raise ValueError(
            "what: expected a Trace, a call, a Translation, a Classification, a HubRun or tensors of weights,"
            f" got {type(what).__name__}{hint}"
        )
    kind = ".cross" if cross else ""
    return tuple(
        AttentionCall(f"attention.{layer}{kind}", Direct(_weights(weights, layer)))
        for layer, weights in enumerate(layers)
    )


def _weights(given: object, layer: int) -> Tensor:
    """The weights of a layer with all four axes."""
    if not hasattr(given, "shape"):
        hint = f"; {_EAGER}" if given is None else ""
        hint = f"; {_STEPS}" if isinstance(given, tuple) else hint
        raise ValueError(f"layer {layer}: expected a tensor of weights, got {type(given).__name__}{hint}")
    try:
        weights = _as_tensor(given).detach()
    except (TypeError, ValueError, RuntimeError):  # of texts or objects
        raise ValueError(f"layer {layer}: expected a tensor of weights, got an array that holds none") from None
    if weights.is_complex() or weights.layout is not torch.strided or weights.is_meta:
        got = f"{weights.dtype}, {weights.layout}, on {weights.device}"
        raise ValueError(f"layer {layer}: expected a dense tensor of real weights, got {got}")
    if not 2 <= weights.dim() <= 4 or 0 in weights.shape:
        raise ValueError(f"layer {layer}: expected (batch, heads, queries, keys), got shape {tuple(weights.shape)}")
    weights = weights.masked_fill(weights.isnan().all(dim=-1, keepdim=True), 0)  # a query that may see nothing
    if weights.isnan().any():
        raise ValueError(f"layer {layer}: expected weights, got NaN in part of a row")
    if weights.min() < 0:
        raise ValueError(f"layer {layer}: expected weights from 0 on, got {float(weights.min()):.3g}; scores?")
    rows, columns = (weights.float().sum(dim=axis) for axis in (-1, -2))
    if bool((rows > 1.05).any()):
        most = float(rows.max())
        cause = "percentages?" if most > 90 else "keys by queries?" if bool((columns < 1.05).all()) else "scores?"
        raise ValueError(f"layer {layer}: expected rows that sum to 1 at most, got {most:.3g}; {cause}")
    return weights.reshape((1,) * (4 - weights.dim()) + weights.shape)


def _as_tensor(given: Any) -> Tensor:
    """Return an array of any library as a tensor: also bfloat16 of numpy, read-only, reversed and swapped bytes."""
    if isinstance(given, Tensor) or (hasattr(given, "__dlpack__") and not isinstance(given, np.ndarray)):
        return torch.as_tensor(given)
    array = np.asarray(given)
    return torch.from_numpy(np.array(array, np.float32 if array.dtype.kind == "V" else array.dtype.newbyteorder("=")))


def other_stack(stack: str, stacks: Sequence[str]) -> str:
    """The stack that cross-attention looks at: another one of the same run."""
    run = stack.rpartition("/")[0]
    return next((name for name in stacks if name != stack and name.rpartition("/")[0] == run), stack)


def _of(tokens: Names | None, stack: str) -> Sequence[object] | None:
    return tokens.get(stack) if isinstance(tokens, Mapping) else tokens


def calls_of_a_size(calls: Iterable[AttentionCall]) -> list[tuple[AttentionCall, ...]]:
    """Return calls by stack, kind, size of map and what their keys cover, in the order of the first ones."""
    found: dict[tuple[object, ...], list[AttentionCall]] = {}
    for call in calls:
        covers = getattr(call.source, "covers", None)
        blocks = "" if covers is None else str(covers.tolist())
        found.setdefault((call.stack, call.kind, call.num_queries, call.num_keys, blocks), []).append(call)
    return [tuple(members) for members in found.values()]


def key_names(call: AttentionCall, *names: Sequence[object] | None, beside: Sequence[object] | None) -> tuple[str, ...]:
    """Return names of the keys, those that are no tokens of the text too, where the queries are its tokens.

    A learned sink is "sink", what precedes the text is counted back from it (-1: just before it), and a block of
    tokens is named by its first and last. Keys of one softmax over both stacks (T5Gemma 2) are a decoder's tokens,
    then those of its encoder, `beside`.
    """
    covers, has_sink = getattr(call.source, "covers", None), getattr(call.source, "has_sink", False)
    spans = [] if covers is None else covers.tolist()
    if call.kind != "cross" and call.num_keys > call.num_queries:
        numbers = range(call.num_queries) if spans or has_sink else None
        some = next((each for each in (*names, numbers) if each is not None and len(each) == call.num_queries), None)
        num_before = call.num_keys - call.num_queries - len(spans)
        spans = spans if num_before == has_sink else []
        num_before = call.num_keys - call.num_queries - len(spans)
        if some is not None and all(each is None or len(each) != call.num_keys for each in names):
            own = _named(len(some), some)
            if num_before != has_sink and not _follows(call, num_before):
                fits = beside is not None and len(beside) == num_before and beside is not some
                return (*own, *_named(num_before, beside)) if fits else _named(call.num_keys)
            before = ["sink" if has_sink and not i else str(i - num_before) for i in range(num_before)]
            return (*before, *own, *(f"{own[a]}…{own[b - 1]}" if b - a > 1 else own[a] for a, b in spans))
    return _named(call.num_keys, *names)


def _follows(call: AttentionCall, num_before: int) -> bool:
    """Whether queries follow so many keys: the first of several attends to none after its own."""
    return call.num_queries > 1 and not call.weights(queries=0)[..., num_before + 1 :].any()


def _named(count: int, *names: Sequence[object] | None) -> tuple[str, ...]:
    """The first names that are as many, each by its label where it is not a text itself; else numbers."""
    fitting = next((some for some in names if some is not None and len(some) == count), range(count))
    return tuple(str(getattr(token, "label", token)) for token in fitting)
