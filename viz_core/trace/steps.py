"""The steps of a generation as one map: which rows and keys of each step the whole map has."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.trace.call import AttentionCall
from viz_core.trace.source import Direct, Projected, Source, StoredTensors, share_keys
from viz_core.trace.weights import TokenMask

Beams = Sequence[Sequence[int]] | Tensor
"""For each text and each of its steps, the row of the batch that wrote it: `beam_indices` of `generate`."""


@dataclass(frozen=True, eq=False)
class Step:
    """A step of a generation: its first rows that the text kept, over its first keys or those after some it dropped."""

    source: Source
    num_rows: int
    offset: int = 0  # keys of the text that its cache did not have any more
    num_keys: int = 0


@dataclass(frozen=True, eq=False)
class Stitched:
    """The rows of successive calls, one below the other; keys that a step did not have get no weight."""

    steps: Sequence[Step]
    total: int

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads, queries of all steps, and keys of the text."""
        batch, heads, _, _ = self.steps[-1].source.shape
        return batch, heads, sum(step.num_rows for step in self.steps), self.total

    @property
    def tokens(self) -> TokenMask | None:
        """True where a key is a token, as of the first and the last step; None for all."""
        found: TokenMask | None = None
        for step in self.steps:
            own: TokenMask | None = getattr(step.source, "tokens", None)
            if own is not None:
                if found is None:
                    found = torch.ones(own.shape[0], self.total, dtype=torch.bool, device=own.device)
                found[:, step.offset : step.offset + step.num_keys] = own[:, : step.num_keys]
        return found

    def tensors(self) -> list[Tensor]:
        """Return the tensors stored for all steps."""
        return [tensor for step in self.steps for tensor in step.source.tensors()]

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        """Return the weights of these heads and queries over all keys."""
        wanted, first, found = range(self.shape[2])[queries], 0, list[Tensor]()
        for step in self.steps:
            own = [i - first for i in wanted if first <= i < first + step.num_rows]
            if own:
                rows = step.source.rows(heads, slice(own[0], own[-1] + 1, wanted.step))[..., : step.num_keys]
                found.append(F.pad(rows, (step.offset, self.total - step.offset - step.num_keys)))
            first += step.num_rows
        return torch.cat(found, dim=2) if found else self.steps[-1].source.rows(heads, slice(0, 0))[..., :0]


def join_steps(
    calls: Iterable[AttentionCall], own_states: Mapping[str, Tensor], beams: Beams | None
) -> tuple[list[tuple[Source, str]], list[tuple[str, Tensor]]]:
    """Return calls by site and states by name, those of a generation as one (`Trace.stitched`)."""
    found, joined_states = list[tuple[Source, str]](), list[tuple[str, Tensor]]()
    families, states = dict[str, list[Source]](), dict[str, list[Tensor]]()
    for call in calls:
        families.setdefault(call.site.partition("@")[0], []).append(call.source)
    whole_steps: dict[str, list[Step]] = {}  # of the first self-attention of each stack that has steps
    for site, family in families.items():
        stack, _, kind = site.partition(".")
        is_cross = kind.endswith("cross")
        if beams is not None and len(family) > 1 and (not is_cross or stack in whole_steps):
            family = of_beams(family, beams)
        if is_cross:
            whole = whole_steps.get(stack)
            if whole is not None and len(family) == len(whole) and share_keys(family):
                num_keys = family[0].shape[3]
                steps = [Step(source, step.num_rows, 0, num_keys) for source, step in zip(family, whole, strict=True)]
                found.append((Stitched(steps, num_keys), site))
                continue
        for steps in [[Step(source, source.shape[2])] for source in family] if is_cross else generations(family, site):
            if len(steps) > 1:
                whole_steps.setdefault(stack, steps)
            last = steps[-1]
            joined = Stitched(steps, last.offset + last.num_keys) if len(steps) > 1 else last.source
            found.append((joined, site))
    for name, state in own_states.items():
        states.setdefault(name.partition("@")[0], []).append(state)
    for name, parts in states.items():
        whole = whole_steps.get(name.partition(".")[0])
        if whole is not None and len(parts) == len(whole) and all(part.dim() == 3 for part in parts):
            if beams is not None:
                parts = [part[torch.as_tensor(beams)[:, i].to(part.device)] for i, part in enumerate(parts)]
            parts = [torch.cat([part[:, : step.num_rows] for part, step in zip(parts, whole, strict=True)], dim=1)]
        joined_states += ((name, state) for state in parts)
    return found, joined_states


def generations(sources: Sequence[Source], site: str) -> list[list[Step]]:
    """Return the calls of a site of self-attention as generations, each the steps of one text; one call is one step.

    A step follows if its first keys are those of the text so far, or of its beginning, where the last words were
    rejected (assisted decoding), or of its end, where a window dropped the first ones; a static cache has empty places
    after them.

    Raises:
        ValueError: if a call has keys of earlier ones, and they are those of no text so far: rows that changed places
            (beams), or a cache of another kind.
    """
    found: list[list[Step]] = []
    texts: list[Tensor | None] = []
    for source in sources:
        _, _, num_queries, num_keys = source.shape
        step = Step(source, num_queries, 0, num_keys)
        before = found[-1] if found else []
        if not before or num_keys <= num_queries or source.shape == before[0].source.shape:
            found.append([step])
            texts.append(_keys(source))
            continue
        step, text = _following(before, texts[-1], source, site)
        before.append(step)
        texts[-1] = text
    return found


def _keys(source: Source) -> Tensor | None:
    return source.keys if isinstance(source, Projected) else None


def _following(steps: list[Step], text: Tensor | None, source: Source, site: str) -> tuple[Step, Tensor | None]:
    """Return a call as the next step of a text, and the keys of the text then; earlier rows are dropped if rejected."""
    batch, _, num_queries, num_keys = source.shape
    count = steps[-1].offset + steps[-1].num_keys
    cached, keys = num_keys - num_queries, _keys(source)
    if source.shape[:2] != steps[0].source.shape[:2]:
        texts = f"{steps[0].source.shape[0]} and {batch} texts"
        raise ValueError(f"site {site!r}: expected steps of one batch, got {texts}")
    if text is None or keys is None:
        if batch > 1:
            raise ValueError(
                f"site {site!r}: maps alone do not show whether texts changed places between steps; record a pass over "
                "each text that was written"
            )
        if cached > count:
            raise ValueError(f"site {site!r}: expected steps that add their keys, got {num_keys} after {count}")
        _keep(steps, count - cached)
        return Step(source, num_queries, 0, num_keys), None
    if cached <= count and torch.equal(keys[:, :, :cached], text[:, :, :cached]):
        _keep(steps, count - cached)
        return Step(source, num_queries, 0, num_keys), keys
    offset = count - cached
    if offset > 0 and torch.equal(keys[:, :, :cached], text[:, :, offset:]):
        own = keys[:, :, cached:]
        return Step(source, num_queries, offset, num_keys), torch.cat([text, own], dim=2)
    end = count + num_queries
    if end <= num_keys and torch.equal(keys[:, :, :count], text):
        return Step(source, num_queries, 0, end), keys[:, :, :end]
    rows = min(cached, count)
    if batch > 1 and _are_rows_of(keys[:, :, :rows], text[:, :, :rows]):
        raise ValueError(
            f"site {site!r}: texts changed places between steps, as in beam search; give "
            "stitched(beams=output.beam_indices), or record a pass over each text that was written"
        )
    raise ValueError(
        f"site {site!r}: expected steps whose keys follow those before, got {num_keys} keys after {count} that are not "
        "the same; record a pass over the whole text that was written"
    )


def _keep(steps: list[Step], rejected: int) -> None:
    """Drop the last rows of a text: words that were rejected."""
    while rejected > 0:
        last = steps.pop()
        remaining = last.num_rows - rejected
        if remaining > 0:
            steps.append(replace(last, num_rows=remaining, num_keys=last.num_keys - rejected))
        rejected = -remaining


def _are_rows_of(keys: Tensor, text: Tensor) -> bool:
    """Whether the keys of each text are those of some text before."""
    return all(any(torch.equal(own, other) for other in text) for own in keys)


def of_beams(sources: Sequence[Source], beams: Beams) -> list[Source]:
    """Return the steps of the texts of a beam search, each from the rows that wrote it.

    Raises:
        ValueError: if there are other steps than the beams tell, or heads were edited.
    """
    table = torch.as_tensor(beams)
    most = min(len(sources), table.shape[1] if table.dim() == 2 else 0)
    if table.dim() != 2 or table.shape[1] not in (len(sources), len(sources) + 1):
        raise ValueError(f"beams: expected (texts, {len(sources)} steps), got shape {tuple(table.shape)}")
    if bool((table[:, :most] < 0).any()):
        raise ValueError(
            "beams: expected texts of one length; give those that end at the same step, beams[row : row + 1]"
        )
    return [rows_of(source, table[:, step]) for step, source in enumerate(sources)]


def rows_of(source: Source, rows: Tensor) -> Source:
    """Return the source of some rows of a batch, in this order. ValueError if its heads were edited."""
    if not isinstance(source, StoredTensors) or not isinstance(source, Projected | Direct):
        raise ValueError(f"expected steps of attention, got {type(source).__name__}")
    if getattr(source, "edits", None) is not None:
        raise ValueError("expected steps without edits, whose rows cannot change places")
    source.check_unchanged()
    batch = source.shape[0]
    parts: dict[str, Any] = {
        name: tensor[rows.to(tensor.device)]
        for name, tensor in source.named_tensors().items()
        if tensor.shape[0] == batch and (tensor.dim() == 4 or name.endswith("tokens"))
    }
    return replace(source, **parts)
