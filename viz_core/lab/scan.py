"""Every measure, role and worth of every head of a model over many texts, pictures or both, in batches.

>>> found = scan(load_hub("writer-en"), texts, progress=lambda lines, count: print(len(lines), count))
>>> heads = found.kinds["decoder-self"]
>>> heads.summary("previous").mean, heads.role_of(0), heads.examples(0, "previous")
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Bool
from PIL import Image
from torch import Tensor
from torch.nn.functional import pad

from viz_core.hub.kinds.decoder import DecoderKind
from viz_core.hub.model import HubModel
from viz_core.hub.runs.run import HubRun, Maps
from viz_core.hub.store import HubError, attempt
from viz_core.lab.heads_off import switchable, without_heads
from viz_core.lab.scan_results import STRONGEST, Alignment, Line, Scan, TargetsOf, Wanted
from viz_core.maps.head_measure import MapBlock, MapInfo, Measure
from viz_core.maps.measures import Patches, induction_targets, weight_shares
from viz_core.maps.register import MEASURES, ROLES, RoleTargets
from viz_core.runtime.hooks import may_end
from viz_core.trace import AttentionCall
from viz_core.trace.one_text import OneText
from viz_core.trace.source import Projected
from viz_core.trace.weights import is_masked

Input: TypeAlias = str | Image.Image | Mapping[str, Any]
"""A text, a picture, or the arguments of `HubModel.run`, such as a text with a picture."""
MAX_TOKENS = 512
"""Texts of more tokens are left out: a map grows with the square of its length."""

EVERYTHING = Wanted.of(None, None)
_RANDOM, _COPIES = 25, 4  # tokens of a random sequence, and how often it comes (Olsson 2022)
_SEQUENCES = 16
_CLOSE = {torch.float32: 1e-4}  # weights of a padded text and of the same text alone
_LEAST = torch.finfo(torch.float32).tiny  # a smaller probability rounds to 0


def scan(
    model: HubModel,
    texts: Sequence[Input],
    *,
    batch: int = 16,
    worth: int = 0,
    max_new_tokens: int | None = None,
    targets: Mapping[str, TargetsOf] | None = None,
    measures: Sequence[str | Measure] | None = None,
    done: Sequence[Line] = (),
    progress: Callable[[Sequence[Line], int], None] | None = None,
) -> Scan:
    """Measure every head over texts, pictures, or both together, as the model takes them, on the model's device.

    Values are those of each text alone, in float32 whatever the model's precision: padding, and keys that no head of a
    layer can see, count nowhere. Induction is measured on random tokens that repeat, as text that repeats itself
    by meaning would also be predicted without it: 25 tokens, 4 times (Olsson 2022, "In-context Learning and Induction
    Heads"). Worth is what switching a head off costs: nats a token of the model's own next-word loss, nats of the
    likeliest class, or else 1 - cos of the last states (`without_heads`).

    Memory: 24 bytes for each text, head and measure.

    Args:
        batch: texts in one pass; the first padded text is also run alone, and if its weights differ, all texts are.
        worth: of so many first texts the worth of each head, a pass for each head.
        max_new_tokens: most that an encoder-decoder writes for a text. Decoders only read.
        targets: roles of your own, each a function of the maps of a text and the text (`TargetsOf`).
        measures: names of registered measures and roles to measure, all unless given, and measures of your own.
        done: the lines of the whole batches of an interrupted scan of these texts, which goes on after them.
        progress: receives the lines of all texts so far, and the number of texts.

    Raises:
        ValueError: if there is no text, `batch` is below 1, a measure is unknown, or targets are no mask of the maps.
    """
    wanted = Wanted.of(targets, measures)
    if not len(texts) or batch < 1:
        raise ValueError(f"expected at least one text and a batch of at least 1, got {len(texts)} and {batch}")
    lines, alone = list(done), any(line["alone"] for line in done)
    options: dict[str, Any] = {"batch": batch, "max_new_tokens": max_new_tokens, "alone": alone, "wanted": wanted}
    for line in read_heads(model, texts[len(done) :], worth=worth - len(done), **options):
        lines.append(line)
        if progress is not None:
            progress(lines, len(texts))
    return Scan.of(lines, read_repeats(model) if wanted.has("induction") else ())


@torch.inference_mode()
def read_heads(
    model: HubModel,
    texts: Sequence[Input],
    *,
    batch: int = 16,
    worth: int = 0,
    max_new_tokens: int | None = None,
    alone: bool = False,
    wanted: Wanted = EVERYTHING,
) -> Iterator[Line]:
    """Yield the line of each text for `Scan.of`; arguments are those of `scan`.

    Args:
        alone: padding changes the weights: run each text by itself.
        wanted: what is measured.
    """
    budget = 0 if model.engine.stack == "decoder" else max_new_tokens
    checked = one_by_one = alone or batch == 1 or not model.engine.in_batches
    for start in range(0, len(texts), batch):
        some = texts[start : start + batch]
        runs = _each(model, some, budget) if one_by_one else _together(model, some)
        own = [(run, text) for run, text in zip(runs, some, strict=True) if isinstance(run, HubRun)]
        if not checked and len({len(run.tokens) for run, _ in own}) > 1:
            padded, text = min(own, key=lambda pair: len(pair[0].tokens))
            close = _CLOSE.get(model.network.dtype, 0.02)
            checked, alone = True, _difference(padded, _each(model, [text], budget)[0]) > close
            one_by_one = alone
            runs = _each(model, some, budget) if alone else runs
        for number, (run, text) in enumerate(zip(runs, some, strict=True), start):
            line = _line(run, text=texts[number], wanted=wanted)
            if number < worth and isinstance(run, HubRun):
                _add_worth(model, run if one_by_one else _each(model, [text], budget)[0], line)
            yield line | {"alone": alone}


@torch.inference_mode()
def read_repeats(model: HubModel) -> list[Line]:
    """Return the lines of random tokens that repeat, none of them special, for `Scan.of`.

    [] if the model does not read texts alone in one stack, or has no room or no words for them.
    """
    engine, found = model.engine, list[Line]()
    if not model.engine.in_batches:
        return found
    try:
        around = engine.encode("a", most=None)["input_ids"][0]  # type: ignore[attr-defined]
    except HubError:
        return found
    special = [token.special for token in engine.read(around.tolist())]
    longest = engine.max_positions(engine.stack or "decoder") or MAX_TOKENS
    count = min(_RANDOM, (longest - len(special)) // _COPIES)
    if all(special) or count < 1:
        return found
    start, end = special.index(False), len(special) - special[::-1].index(False)
    size = min(model.card.vocabulary_size, model.network.get_input_embeddings().num_embeddings)
    for seed in range(_SEQUENCES):
        drawn = torch.randint(size, (4 * count + 16,), generator=torch.Generator().manual_seed(seed)).tolist()
        chosen = [token.id for token in engine.read(drawn) if not token.special][:count]
        if not chosen:
            continue
        ids = torch.cat([around[:start], torch.tensor(chosen * _COPIES).to(around), around[end:]])
        (run,) = _recorded(model, [{"input_ids": ids[None]}])
        line = _line(run, {"induction": induction_targets(ids.tolist())})
        for kind in line["kinds"].values():
            kind["measures"] = {"induction": kind["measures"]["induction"]}
        found.append(line)
    return found


def _each(model: HubModel, texts: Sequence[Input], budget: int | None) -> list[HubRun | HubError]:
    """The run of each text or picture by itself, or what is wrong with it."""
    read = [text for text in texts if isinstance(text, str)]
    runs = iter(model.run_each(read, max_new_tokens=budget, max_tokens=MAX_TOKENS))
    given = [text if isinstance(text, str | Mapping) else {"image": text} for text in texts]
    return [next(runs) if isinstance(each, str) else attempt(model.run, **each) for each in given]


def _together(model: HubModel, texts: Sequence[Input]) -> list[HubRun | HubError]:
    """The same in one pass."""
    encode: Any = model.engine.encode  # type: ignore[attr-defined]
    encoded: list[Any] = [attempt(encode, text, most=MAX_TOKENS) for text in texts]
    together = [each for each in encoded if not isinstance(each, HubError)]
    runs = iter(_recorded(model, together) if together else ())
    return [each if isinstance(each, HubError) else next(runs) for each in encoded]


def _recorded(model: HubModel, encoded: Sequence[dict[str, Tensor]]) -> list[HubRun]:
    """Runs of several encoded texts in one pass, padded at the end; without outputs."""
    engine, longest = model.engine, max(each["input_ids"].shape[1] for each in encoded)
    masked = [each | {"attention_mask": torch.ones_like(each["input_ids"])} for each in encoded]
    inputs = {
        name: torch.cat([pad(each[name], (0, longest - each[name].shape[1])) for each in masked]) for name in masked[0]
    }
    options = engine.options_of_pass(1) if isinstance(engine, DecoderKind) else {}
    with engine.serial:
        trace = engine.recorded(inputs, longest, **options)[1]
    ids = [each["input_ids"][0].tolist() for each in encoded]
    return [HubRun(engine.read(own), trace.text(row), torch.zeros(0)) for row, own in enumerate(ids)]


def _difference(run: HubRun, other: HubRun | HubError) -> float:
    """Largest difference between the weights of two runs of one text; infinite where they are of other sizes."""
    if isinstance(other, HubError) or run.trace.sites != other.trace.sites:
        return float("inf")
    pairs = [(call.weights(), other.trace[call.site].weights()) for call in run.trace]
    same = all(one.shape == two.shape for one, two in pairs)
    return max(float((one - two).abs().max()) for one, two in pairs) if same else float("inf")


def _line(
    run: HubRun | HubError,
    targets: Mapping[str, Bool[Tensor, "queries keys"]] | None = None,
    text: Any = None,
    wanted: Wanted = EVERYTHING,
) -> Line:
    """Return the line of one text; targets are the keys of each role, those of the text unless given."""
    may_end()
    if isinstance(run, HubError):
        return {"error": run}
    kinds = {}
    for maps in run.maps:
        grid = run.grid if maps.frame is None else maps.frame.grid
        patches = None if grid is None else Patches(grid, len(maps.key_tokens) - grid[0] * grid[1])
        found = targets or {name: mask for name, mask in _targets(maps).items() if wanted.has(name)}
        kinds[maps.id] = _heads(maps, {**found, **wanted.targets_in(maps, text)}, patches, wanted)
    return {"kinds": kinds, "tokens": len(run.tokens) + len(run.target_tokens)}


def _heads(
    maps: Maps, targets: Mapping[str, Alignment | Bool[Tensor, "queries keys"]], patches: Patches | None, wanted: Wanted
) -> Line:
    """Return value, chance and the query with the largest value of each measure and head."""
    layers: list[tuple[int, dict[str, np.ndarray]]] = []
    keys, on_itself = len(maps.text_keys), not maps.id.endswith("cross")
    for call in maps.calls:
        may_end()
        own, measured = call.weights()[0], dict[str, tuple[Tensor, float, Tensor]]()
        weights = (weight_shares(own) if call.signed else own)[..., -keys:]
        seen = _visible(call, maps)[:, -keys:].float()
        even = seen / seen.sum(dim=-1, keepdim=True).clamp_min(1)
        info = MapInfo(own.shape[1], own.shape[2], on_itself, patches=patches, signed=call.signed)
        for name, found in targets.items():
            target = found.targets if isinstance(found, Alignment) else found
            if isinstance(found, Alignment) and target.any():
                values, chance, rows = found.strongest(weights)
                measured[name + STRONGEST] = values, chance, torch.full((len(own),), -1)
            if patches and name in MEASURES and not MEASURES[name].applies(info):
                continue
            target = target & (even > 0) if name == "same-word" else target
            if rows := target.any(dim=-1).nonzero().flatten().tolist():
                values, chances = ((each * target).sum(dim=-1)[..., rows] for each in (weights, even))
                measured[name] = values.mean(-1), float(chances.mean()), torch.tensor(rows)[values.argmax(-1)]
        registered = (each for name, each in MEASURES.items() if name not in ROLES and wanted.has(name))
        for measure in (*registered, *wanted.own):
            if measure.sums is None or not measure.fits(info):
                continue
            name = measure.name
            blocks = (MapBlock(own[:, i : i + 1], i, info) for i in range(own.shape[1]))
            sums = torch.stack([measure.sums(block) for block in blocks], dim=1).double()
            rows_of = sums if sums.dim() == 2 else -sums[..., -1] if name == "information" else sums[..., 0]
            measured[name] = measure.value(sums.sum(dim=1), info), float("nan"), rows_of.argmax(dim=-1)
        parts = {k: np.stack([v, np.full(call.num_heads, c), q]) for k, (v, c, q) in measured.items()}
        layers.append((call.num_heads, parts))
    names = dict.fromkeys(name for _, parts in layers for name in parts)
    gaps = [np.repeat([[np.nan], [np.nan], [-1]], count, axis=1) for count, _ in layers]
    joined = {n: np.hstack([p.get(n, gap) for (_, p), gap in zip(layers, gaps, strict=True)]) for n in names}
    return {"heads": [[call.layer, head] for call in maps.calls for head in range(call.num_heads)], "measures": joined}


def _visible(call: AttentionCall, maps: Maps) -> Bool[Tensor, "queries keys"]:
    """Keys that each query may see; where only weights are known, the earlier ones if no layer sees others."""
    of_text = call.source if isinstance(call.source, OneText) else None
    source = call.source if of_text is None else of_text.source
    if isinstance(source, Projected) and not call.signed:  # without queries, biases and edits only the mask is left
        bias = source.bias if source.bias is None else torch.where(is_masked(source.bias), -torch.inf, 0.0)
        blank: Any = replace(source, queries=torch.zeros_like(source.queries), bias=bias, edits=None)
        blank = blank if of_text is None else replace(of_text, source=blank)
        return (AttentionCall(call.site, blank).weights()[0] > 0).any(dim=0)
    is_causal = not any(bool(each.weights()[0].triu(1).any()) for each in maps.calls)
    everything = torch.ones(call.num_queries, call.num_keys, dtype=torch.bool)
    return everything.tril(call.num_keys - call.num_queries) if is_causal and call.kind == "self" else everything


def _targets(maps: Maps) -> dict[str, Bool[Tensor, "queries keys"]]:
    """The target keys of each role but induction, in one text."""
    keys, on_itself = maps.text_keys, not maps.id.endswith("cross")
    queries = keys if on_itself else maps.query_tokens
    roles = RoleTargets.of([t.text for t in queries], [t.text for t in keys], on_itself)
    return {name: mask for name, mask in roles.masks.items() if name != "induction"}


def _add_worth(model: HubModel, run: HubRun | HubError, line: Line) -> None:
    """Add what switching off each head costs, where heads can be switched off."""
    if isinstance(run, HubError):
        return
    places = {call.site: (maps.id, call.layer) for maps in run.maps for call in maps.calls}
    for site, count in switchable(model, run):
        id_, layer = places[site]
        kind = line["kinds"][id_]
        gap = np.repeat([[np.nan], [np.nan], [-1]], len(kind["heads"]), axis=1)
        worth = kind["measures"].setdefault("worth", gap)
        for head in range(count):
            may_end()
            cost, without = np.nan, without_heads(model, run, ((site, head),))
            if without.perplexity is not None:
                cost = np.log(without.perplexity[1] / without.perplexity[0])
            elif without.distances is not None:
                cost = without.distances.mean()
            elif without.changes:
                likeliest = max(without.changes, key=lambda change: change.before)
                cost = np.log(likeliest.before / max(likeliest.after, _LEAST))
            worth[0, kind["heads"].index([layer, head])] = cost
