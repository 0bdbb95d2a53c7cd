"""Measure every head of a model over a file of texts: python -m recipes scan MODEL --texts FILE --out FILE.

MODEL is a name, of the Hub's too, or a folder. Each line of the texts is one. The table is CSV, a row for each head and
measure. The same from Python, over pictures too:

>>> found = scan(load_hub("writer-en"), texts, save="writer.jsonl", progress=lambda done, count: print(done, count))
>>> heads = found.kinds["decoder-self"]
>>> heads.summary("previous").mean, heads.role_of(0), heads.examples(0, "previous")
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Bool
from PIL import Image
from torch import Tensor
from torch.nn.functional import pad

from recipes.scanned import Line, Scan
from viz_core.hub import load_hub
from viz_core.hub.corpus import MOST_TOKENS
from viz_core.hub.corpus_kind import keys_of
from viz_core.hub.heads_off import switchable, without_heads
from viz_core.hub.kinds.decoder import DecoderKind
from viz_core.hub.kinds.encoder import EncoderKind
from viz_core.hub.model import HubModel
from viz_core.hub.runs.run import HubRun, Maps
from viz_core.hub.store.errors import HubError
from viz_core.maps.distance import Patches
from viz_core.maps.head_measure import MapBlock, MapInfo
from viz_core.maps.measures import induction_targets, weight_shares
from viz_core.maps.register import MEASURES
from viz_core.maps.roles import ROLES, RoleTargets
from viz_core.runtime.interruption import may_end
from viz_core.trace import AttentionCall
from viz_core.trace.source import Projected

Input: TypeAlias = str | Image.Image
_RANDOM, _COPIES = 25, 4  # tokens of a random sequence, and how often it comes (Olsson 2022)
_SEQUENCES = 16
_CLOSE = {torch.float32: 1e-4}  # weights of a padded text and of the same text alone


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="python -m recipes scan", description=__doc__)
    parser.add_argument("model", help="a name or a folder")
    parser.add_argument("--texts", type=Path, required=True, help="a text a line")
    parser.add_argument("--out", type=Path, required=True, help="the table, CSV")
    parser.add_argument("--batch", type=int, default=16, help="texts in one pass")
    parser.add_argument("--worth", type=int, default=0, help="texts on which each head is switched off")
    parser.add_argument("--save", type=Path, help="from which an interrupted scan goes on")
    chosen = parser.parse_args(arguments)
    try:
        texts = [line for line in chosen.texts.read_text(encoding="utf-8").splitlines() if line.strip()]
        model = load_hub(Path(chosen.model) if Path(chosen.model).is_dir() else chosen.model)
        found = scan(model, texts, batch=chosen.batch, worth=chosen.worth, save=chosen.save, progress=_print)
    except (ValueError, OSError) as error:
        print(f"cannot scan {chosen.model}: {error}", file=sys.stderr)
        return 1
    rows = list(found.table())
    with chosen.out.open("w", encoding="utf-8", newline="") as stream:
        table = csv.DictWriter(stream, list(rows[0]) if rows else ["maps"])
        table.writeheader()
        table.writerows(rows)
    for number, reason in found.left_out:
        print(f"line {number + 1} was left out: {reason}", file=sys.stderr)
    return 0


def _print(done: int, count: int) -> None:
    print(f"{done} of {count}", file=sys.stderr, flush=True)


@torch.inference_mode()
def scan(
    model: HubModel,
    texts: Sequence[Input],
    *,
    batch: int = 16,
    worth: int = 0,
    max_new_tokens: int | None = None,
    save: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Scan:
    """Measure every head over texts, or over pictures for a vision model, on the model's device.

    Values are those of each text alone, in float32 whatever the model's precision: padding, and keys that no head of a
    layer can see, count nowhere. Induction is measured on random tokens that repeat, as text that repeats itself
    by meaning would also be predicted without it: 25 tokens, 4 times (Olsson 2022, "In-context Learning and Induction
    Heads"). Worth is what switching a head off costs: nats a token of the model's own next-word loss, nats of the
    likeliest class, or else 1 - cos of the last states (`without_heads`).

    Memory: 16 bytes for each text, head and measure.

    Args:
        batch: texts in one pass, of encoders and decoders; the first padded text is also run alone, and if its weights
            differ, all texts are (`Scan.alone`).
        worth: of so many first texts the worth of each head, a pass for each head.
        max_new_tokens: most that an encoder-decoder writes for a text. Decoders only read.
        save: a file that grows with each batch, from which an interrupted scan goes on.
        progress: is called with the texts done and their number.

    Raises:
        ValueError: if there is no text, `batch` is below 1, or `save` is of another scan.
    """
    if not len(texts) or batch < 1:
        raise ValueError(f"expected at least one text and a batch of at least 1, got {len(texts)} and {batch}")
    parts = [text if isinstance(text, str) else [text.mode, *text.size, text.tobytes().hex()] for text in texts]
    settings = [model.card.name, model.card.revision, batch, worth, max_new_tokens, parts]
    digest = hashlib.sha256(json.dumps(settings).encode()).hexdigest()
    file = None if save is None else Path(save)
    lines = [] if file is None or not file.exists() else _read(file, digest)
    lines = lines[: min(len(lines) // batch * batch, len(texts)) if len(lines) < len(texts) else len(texts)]
    runs = _Runs(model, batch, max_new_tokens, alone=any(line.get("alone") for line in lines))

    def write(new: Sequence[object], how: str = "a") -> None:
        if file is not None:
            with file.open(how, encoding="utf-8") as stream:
                stream.writelines(json.dumps(each) + "\n" for each in new)

    write([digest, *lines], "w")
    for start in range(len(lines), len(texts), batch):
        if progress is not None:
            progress(start, len(texts))
        some = texts[start : start + batch]
        counted = [text if number < worth else None for number, text in enumerate(some, start)]
        new = [_measured(runs, run, text) for run, text in zip(runs.of(some), counted, strict=True)]
        lines += [line | {"alone": runs.alone} for line in new]
        write(lines[start:])
    repeats = [_repeats(model, seed) for seed in range(_SEQUENCES if runs.in_batches else 0)]
    if progress is not None:
        progress(len(texts), len(texts))
    return Scan.of(lines, repeats)


class _Runs:
    """Runs of texts: several in one pass where the model takes them so."""

    def __init__(self, model: HubModel, size: int, max_new_tokens: int | None, alone: bool) -> None:
        self.model, self.alone, self._checked = model, alone, alone
        self.in_batches = type(model.engine) in (EncoderKind, DecoderKind) and size > 1
        self._limits: Any = {
            "max_tokens": MOST_TOKENS,
            "max_new_tokens": 0 if model.engine.stack == "decoder" else max_new_tokens,
        }

    def of(self, texts: Sequence[Input]) -> list[HubRun | HubError]:
        """The run of each, or what is wrong with it."""
        if not self.in_batches or self.alone:
            return [self.one(text) for text in texts]
        encoded: list[Any] = []
        for text in texts:
            try:
                encoded.append(self.model.engine.encode(text, most=MOST_TOKENS))  # type: ignore[attr-defined]
            except HubError as error:
                encoded.append(error)
        together = [each for each in encoded if not isinstance(each, HubError)]
        traces = iter(_recorded(self.model, together) if together else ())
        runs = [each if isinstance(each, HubError) else next(traces) for each in encoded]
        lengths = [each["input_ids"].shape[1] for each in together]
        if not self._checked and lengths and min(lengths) < max(lengths):
            self._checked = True
            own = [(run, text) for run, text in zip(runs, texts, strict=True) if isinstance(run, HubRun)]
            padded, text = min(own, key=lambda pair: len(pair[0].tokens))
            self.alone = _difference(padded, self.one(text)) > _CLOSE.get(self.model.network.dtype, 0.02)
        return self.of(texts) if self.alone else runs

    def one(self, text: Input) -> HubRun | HubError:
        """The run of a text or picture by itself."""
        given: Any = {"text": text} if isinstance(text, str) else {"image": text}
        try:
            return self.model.run(**given, **self._limits)
        except HubError as error:
            return error


def _recorded(model: HubModel, encoded: Sequence[dict[str, Tensor]]) -> list[HubRun]:
    """Runs of several encoded texts in one pass, padded at the end; without outputs."""
    engine, longest = model.engine, max(each["input_ids"].shape[1] for each in encoded)
    masked = [each | {"attention_mask": torch.ones_like(each["input_ids"])} for each in encoded]
    inputs = {
        name: torch.cat([pad(each[name], (0, longest - each[name].shape[1])) for each in masked]) for name in masked[0]
    }
    options: dict[str, Any] = {"use_cache": False} if engine.stack == "decoder" else {}
    if "logits_to_keep" in inspect.signature(engine.model.forward).parameters:
        options["logits_to_keep"] = 1
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


def _measured(runs: _Runs, run: HubRun | HubError, worth_of: Input | None) -> Line:
    """What one text says of each head."""
    may_end()
    if isinstance(run, HubError):
        return {"error": str(run)}
    kinds = {}
    for maps in run.maps:
        picture = None if run.grid is None else Patches(run.grid, len(maps.key_tokens) - run.grid[0] * run.grid[1])
        kinds[maps.id] = _heads(maps, {} if picture else _targets(maps), picture)
    for place, cost in _costs(runs, worth_of).items() if worth_of is not None else ():
        kind = kinds[place[0]]
        worth = kind["values"].setdefault("worth", [float("nan")] * len(kind["heads"]))
        worth[kind["heads"].index(list(place[1:]))] = cost
    return {"kinds": kinds, "tokens": len(run.tokens) + len(run.target_tokens)}


def _heads(maps: Maps, targets: Mapping[str, Bool[Tensor, "queries keys"]], patches: Patches | None = None) -> Line:
    """Values of each head, their chance, and the query with the largest value of its own."""
    found: Line = {"heads": [], "values": {}, "chance": {}, "queries": {}}
    keys, on_itself = len(keys_of(maps)), not maps.id.endswith("cross")
    for layer, call in enumerate(maps.calls):
        may_end()
        own = call.weights()[0]
        weights = (weight_shares(own) if call.signed else own)[..., -keys:]
        seen = _visible(call, maps)[:, -keys:].float()
        even = seen / seen.sum(dim=-1, keepdim=True).clamp_min(1)
        measured = {}
        for name, target in targets.items():
            target = target & (even > 0) if name == "same-word" else target
            if rows := target.any(dim=-1).nonzero().flatten().tolist():
                values, chances = ((each * target).sum(dim=-1)[..., rows] for each in (weights, even))
                measured[name] = values.double().mean(-1), float(chances.mean()), torch.tensor(rows)[values.argmax(-1)]
        info = MapInfo(own.shape[1], own.shape[2], on_itself, patches=patches, signed=call.signed)
        for name, measure in MEASURES.items():
            if measure.sums is None or name in (*targets, *(("information",) if on_itself else ())):
                continue
            if measure.fits(info) and (patches or name not in ROLES):
                blocks = (MapBlock(own[:, i : i + 1], i, info) for i in range(own.shape[1]))
                sums = torch.stack([measure.sums(block) for block in blocks], dim=1).double()
                rows_of = sums if sums.dim() == 2 else -sums[..., -1] if name == "information" else sums[..., 0]
                measured[name] = measure.value(sums.sum(dim=1), info), float("nan"), rows_of.argmax(dim=-1)
        count, before = call.num_heads, len(found["heads"])
        found["heads"] += [[layer, head] for head in range(count)]
        for name in dict.fromkeys((*found["values"], *measured)):
            value, chance, query = measured.get(name, (torch.full((count,), torch.nan), torch.nan, -torch.ones(count)))
            numbers = value.tolist(), [chance] * count, query.long().tolist()
            for part, added, gap in zip(
                ("values", "chance", "queries"), numbers, (torch.nan, torch.nan, -1), strict=True
            ):
                found[part].setdefault(name, [gap] * before).extend(added)
    return found


def _visible(call: AttentionCall, maps: Maps) -> Bool[Tensor, "queries keys"]:
    """Keys that each query may see; where only weights are known, the earlier ones if no layer sees others."""
    source = call.source
    if isinstance(source, Projected) and source.edits is None:  # with queries of zeros only the mask is left
        blank = replace(source, queries=torch.zeros_like(source.queries))
        return (AttentionCall(call.site, blank).weights()[0] > 0).any(dim=0)
    is_causal = not any(bool(each.weights()[0].triu(1).any()) for each in maps.calls)
    everything = torch.ones(call.num_queries, call.num_keys, dtype=torch.bool)
    return everything.tril(call.num_keys - call.num_queries) if is_causal and call.kind == "self" else everything


def _targets(maps: Maps) -> dict[str, Bool[Tensor, "queries keys"]]:
    """The target keys of each role but induction, in one text."""
    keys, on_itself = keys_of(maps), not maps.id.endswith("cross")
    queries = keys if on_itself else maps.query_tokens
    roles = RoleTargets.of([t.text for t in queries], [t.text for t in keys], on_itself)
    columns, rows = torch.arange(len(keys)), torch.arange(len(queries))[:, None]
    found = {"previous": columns == rows - 1, "next": columns == rows + 1, "diagonal": columns == rows}
    found = found if on_itself else {}
    for name, places in (("first", (0,)), ("separator", roles.separators), ("punctuation", roles.punctuation)):
        found[name] = torch.isin(columns, torch.tensor(places)).expand(len(queries), -1)
    return found | {"same-word": roles.same_word}


def _repeats(model: HubModel, seed: int) -> Line:
    """Induction of each head on random tokens that repeat, all others of the vocabulary alike but special ones."""
    engine, random = model.engine, torch.Generator().manual_seed(seed)
    around = engine.encode("a", most=None)["input_ids"][0]  # type: ignore[attr-defined]
    special = [token.special for token in engine.read(around.tolist())]
    text = special.index(False), len(special) - special[::-1].index(False)
    room = engine.room(engine.stack or "decoder") or MOST_TOKENS
    count = min(_RANDOM, (room - len(special)) // _COPIES)
    drawn = torch.randint(model.card.vocabulary_size, (4 * count + 16,), generator=random).tolist()
    chosen = [token.id for token in engine.read(drawn) if not token.special][:count]
    ids = torch.cat([around[: text[0]], torch.tensor(chosen * _COPIES).to(around), around[text[1] :]])
    (run,) = _recorded(model, [{"input_ids": ids[None]}])
    induction = {"induction": induction_targets(ids.tolist())}
    kinds = {}
    for maps in run.maps:
        found = _heads(maps, induction)
        kinds[maps.id] = {k: v if k == "heads" else {"induction": v["induction"]} for k, v in found.items()}
    return {"kinds": kinds, "tokens": len(ids)}


def _costs(runs: _Runs, text: Input) -> dict[tuple[str, int, int], float]:
    """What switching off each head costs, by kind, layer and head."""
    run, found = runs.one(text), dict[tuple[str, int, int], float]()
    if isinstance(run, HubError):
        return found
    for site, count in switchable(runs.model, run):
        call = run.trace[site]
        for head in range(count):
            may_end()
            without = without_heads(runs.model, run, ((site, head),))
            if without.perplexity is not None:
                cost = float(np.log(without.perplexity[1] / without.perplexity[0]))
            elif without.distances is not None:
                cost = float(without.distances.mean())
            elif without.changes:
                likeliest = max(without.changes, key=lambda change: change.before)
                cost = float(np.log(likeliest.before / likeliest.after))
            else:
                continue
            found[f"{call.stack}-{call.kind}", call.layer, head] = cost
    return found


def _read(file: Path, digest: str) -> list[Line]:
    """The lines of an interrupted scan; what was written half is left out."""
    first, *rest = file.read_text(encoding="utf-8").split("\n")[:-1]
    if first != json.dumps(digest):
        raise ValueError(f"save: expected a new file, or one of the same model, texts and settings, got {file}")
    return [json.loads(line) for line in rest]
