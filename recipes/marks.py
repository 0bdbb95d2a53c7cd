"""What rests on the marks of a translator: python -m recipes marks NAME [--checkpoints FOLDER].

Prints what the section "Why do heads look at nothing?" shows of a model, as JSON: for each layer of self-attention the
weight on its mark and how long the mark's values are, all maps of one sentence, and BLEU with the marks and without
them as keys. assets/marks/before.json is of the weights that shipped first, now.json of those that ship.
"""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from recipes.spread import OFFSETS
from viz_core.pretrained import Translator, load_translator
from viz_core.pretrained.bleu import corpus_bleu
from viz_core.pretrained.samples import Sample, held_out, sentence
from viz_core.trace import AttentionCall, intervene, knock_out, record

STACKS = ("encoder", "decoder")
WORDS = range(6, 13)  # of an English sentence that weights and lengths are measured on
MUCH = 0.5  # of a head's weight on a mark
SENTENCES = 200  # that are translated with and without the marks


def print_marks(name: str, checkpoints: Path, _: Path | None) -> None:
    """Print what rests on the marks of a translator with self-attention, as JSON."""
    translator = load_translator(name, folder=checkpoints)
    samples = held_out()
    shares = mark_shares(translator, samples)
    if not shares:
        raise ValueError("expected a model with self-attention, got one without")
    lengths = value_lengths(translator, [each for each in samples if len(each.english.split()) in WORDS])
    layers = {
        kind: [
            {"median": float(np.median(heads)), "above": int((heads > MUCH).sum()), "value": float(np.median(values))}
            for heads, values in zip(shares[kind], lengths[kind], strict=True)
        ]
        for kind in shares
    }
    whole = np.concatenate([heads.ravel() for heads in shares.values()])
    step = max(1, len(samples) // SENTENCES)
    chosen = samples[::step][:SENTENCES]
    references = [each.references for each in chosen]
    bleu = {
        setting: corpus_bleu([_translated(translator, each.english, cut) for each in chosen], references)
        for setting, cut in (("with", False), ("without", True))
    }
    found = {
        "median": float(np.median(whole)),
        "above": int((whole > MUCH).sum()),
        "heads": whole.size,
        "guided": _guided(checkpoints / name / "training.json"),
        "layers": layers,
        "sentences": len(chosen),
        "bleu": bleu,
        "sample": sample_maps(translator, sentence("apple")),
    }
    print(json.dumps(_rounded(found), ensure_ascii=False))


def _guided(path: Path) -> int:
    """Number of heads that training asked for the token of a sign (recipes.spread)."""
    guides = json.loads(path.read_text("utf-8"))["recipe"].get("guides", {})
    return sum(sign in OFFSETS for signs in guides.values() for sign in signs)


@torch.inference_mode()
def mark_shares(translator: Translator, samples: Sequence[Sample]) -> dict[str, Float[np.ndarray, "layers heads"]]:
    """Mean weight of each self-attention head on the end mark of the source or the start mark of the translation.

    Over sentences of 6 to 12 words and their first reference, all queries but one that sees the mark alone.
    """
    found: dict[str, list[list[np.ndarray]]] = {}
    for sample in samples:
        if len(sample.english.split()) not in WORDS:
            continue
        ids = [
            [*translator.tokenizer.encode(text).ids, translator.special.eos]
            for text in (sample.english, sample.references[0])
        ]
        with record() as trace:
            translator.model(*translator.teacher_forced(*ids))
        for stack in STACKS:
            calls = [call for call in trace if call.kind == "self" and call.stack == stack]
            weights = [call.weights()[0] for call in calls]
            own = [each[..., -1] if stack == "encoder" else each[:, 1:, 0] for each in weights]
            if own:
                found.setdefault(f"{stack}-self", []).append([each.mean(dim=-1).numpy() for each in own])
    return {kind: np.mean(each, axis=0) for kind, each in found.items()}


@torch.inference_mode()
def value_lengths(translator: Translator, samples: Sequence[Sample]) -> dict[str, Float[np.ndarray, "layers heads"]]:
    """|v_mark| over the mean |v_j| of all other tokens, a self-attention head each; the mean over the sentences."""
    found: dict[str, list[np.ndarray]] = {}
    for sample in samples:
        ids = [translator.tokenizer.encode(text).ids for text in (sample.english, sample.references[0])]
        with record(values=True) as trace:
            translator.model(*translator.teacher_forced(*([*each, translator.special.eos] for each in ids)))
        for stack in STACKS:
            own = [_length_of_mark(call) for call in trace if call.kind == "self" and call.stack == stack]
            found.setdefault(f"{stack}-self", []).append(np.stack(own))
    return {kind: np.mean(each, axis=0) for kind, each in found.items()}


def _length_of_mark(call: AttentionCall) -> Float[np.ndarray, " heads"]:
    lengths = call.values[0].norm(dim=-1)  # (heads, tokens)
    mark = -1 if call.stack == "encoder" else 0
    others = lengths[:, :-1] if call.stack == "encoder" else lengths[:, 1:]
    return (lengths[:, mark] / others.mean(dim=-1)).numpy()


def _translated(translator: Translator, english: str, without_marks: bool) -> str:
    """A greedy translation, where asked for without the marks as keys of self-attention."""
    end = len(translator.tokenizer.encode(english).ids)
    blks = range(len(translator.model.encoder.blocks))
    cuts = {f"encoder.{i}.self": knock_out(None, key=end) for i in blks}
    cuts |= {f"decoder.{i}.self": knock_out(None, query=slice(1, None), key=0) for i in blks}
    with intervene(cuts) if without_marks else nullcontext():
        return translator.translate(english).text


def sample_maps(translator: Translator, english: str) -> dict[str, Any]:
    """All self-attention maps of a sentence and of its translation in 255ths, with the tokens of rows and columns."""
    found = translator.translate(english)
    tokens = {
        "encoder": (found.source_tokens, found.source_tokens),
        "decoder": (found.target_tokens, found.decoder_tokens),
    }
    return {
        f"{stack}-self": {
            "queries": tokens[stack][0],
            "keys": tokens[stack][1],
            "maps": [
                (call.weights()[0] * 255).round().int().tolist()
                for call in found.trace
                if call.kind == "self" and call.stack == stack
            ],
        }
        for stack in STACKS
    }


def _rounded(what: Any) -> Any:
    if isinstance(what, dict):
        return {name: _rounded(each) for name, each in what.items()}
    if isinstance(what, list):
        return [_rounded(each) for each in what]
    return round(what, 3) if isinstance(what, float) else what
