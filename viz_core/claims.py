"""Residuals of what must be true of a trace and of a decoder: each is a number that should be near zero."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from viz_core.anatomy import encoder_steps
from viz_core.models.transformer import TransformerEncoder
from viz_core.pretrained import Translation, Translator
from viz_core.trace import AttentionCall, Trace


def translation_residuals(translator: Translator, translation: Translation) -> dict[str, float]:
    """How far a translation is from what must be true of it: rows sum to 1, nothing looks ahead or leaks, one pass
    equals cached steps. By the name of each claim."""
    decoder = [call for call in translation.trace if (call.stack, call.kind) == ("decoder", "self")]
    return {
        "rows": row_sum_error(translation.trace),
        "future": max(future_weight(call) for call in decoder),
        "leak": future_leak(translator, translation, len(translation.target_ids) - 1),
        "cache": cache_error(translator, translation),
    }


def row_sum_error(trace: Trace, most: int | None = None) -> float:
    """max |1 - sum_j a_ij| over every head of every call; a row that may see no key counts as 0.

    Args:
        most: only so many of the last queries, which see the most keys; all of them unless given.
    """
    worst = 0.0
    for call in trace:
        first = 0 if most is None else max(0, call.num_queries - most)
        sums = call.weights(queries=slice(first, None)).sum(dim=-1)
        worst = max(worst, float(torch.where(sums == 0, 0.0, (sums - 1).abs()).max()))
    return worst


def future_weight(call: AttentionCall, most: int | None = None) -> float:
    """The largest weight above the diagonal: what a step gives to keys that come after it.

    Args:
        most: only so many of the first queries, which have the most future; all of them unless given.
    """
    return float(call.weights(queries=slice(0, most)).triu(diagonal=1 + call.num_keys - call.num_queries).max())


@torch.inference_mode()
def cache_error(translator: Translator, translation: Translation) -> float:
    """max |logits of one pass - logits of cached steps| over the whole translation."""
    source, valid_lens, target = _inputs(translator, translation)
    model = translator.model
    state = model.decoder.init_state(model.encoder(source, valid_lens), valid_lens)
    steps = []
    for i in range(target.shape[1]):
        logits, state = model.decoder(target[:, i : i + 1], state)
        steps.append(logits)
    return float((model(source, target, valid_lens) - torch.cat(steps, dim=1)).abs().max())


@torch.inference_mode()
def future_leak(translator: Translator, translation: Translation, step: int) -> float:
    """max change of the logits before `step` when the target token at `step` becomes another one.

    Raises:
        ValueError: if there is no such step.
    """
    source, valid_lens, target = _inputs(translator, translation)
    if not 0 <= step < target.shape[1]:
        raise ValueError(f"step: expected 0 to {target.shape[1] - 1}, got {step}")
    changed = target.clone()
    changed[0, step] = (changed[0, step] + 1) % translator.tokenizer.get_vocab_size()
    before = translator.model(source, target, valid_lens)[:, :step]
    after = translator.model(source, changed, valid_lens)[:, :step]
    return float((before - after).abs().max()) if step else 0.0


def walk_error(encoder: TransformerEncoder, source: Int[Tensor, "batch n"]) -> float:
    """max |last of the single steps - encoder(source)|: whether the steps shown are those the encoder takes."""
    with torch.inference_mode():
        return float((encoder_steps(encoder, source)[-1].output - encoder(source)).abs().max())


@torch.inference_mode()
def position_wise_error(encoder: TransformerEncoder, num_positions: int = 8) -> float:
    """max difference between the first feed-forward net's outputs for one vector put at several positions."""
    twins = encoder.embedding.weight[:1].expand(1, num_positions, -1)
    outputs = encoder.blocks[0].ffn(twins)
    return float((outputs - outputs[:, :1]).abs().max())


def _inputs(translator: Translator, translation: Translation) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    source = torch.tensor([translation.source_ids], device=translator.device)
    target = torch.tensor([[translator.special.bos, *translation.target_ids[:-1]]], device=translator.device)
    return source, torch.tensor([source.shape[1]], device=translator.device), target
