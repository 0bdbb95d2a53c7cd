"""Residuals of a translation by the Transformer, near zero for a correct model."""

import torch

from viz_core.maps.residuals import future_weight
from viz_core.models.anatomy import Step, encoder_steps
from viz_core.models.transformer import TransformerEncoder
from viz_core.pretrained import Translation, Translator


def translation_residuals(translator: Translator, translation: Translation) -> dict[str, float]:
    """How far a translation is from what must be true of it, by the name of each claim: nothing looks ahead or leaks,
    one pass equals cached steps. That rows sum to 1 is known from the thumbnails, `MapGroup.row_error`."""
    decoder = [call for call in translation.trace if (call.stack, call.kind) == ("decoder", "self")]
    return {
        "future": max(future_weight(call) for call in decoder),
        "leak": future_leak(translator, translation, len(translation.target_ids) - 1),
        "cache": translation.cache_error,
    }


@torch.inference_mode()
def future_leak(translator: Translator, translation: Translation, step: int) -> float:
    """max change of the logits before `step` when the target token at `step` becomes another one."""
    source, target, valid_lens = translator.teacher_forced(translation.source_ids, translation.target_ids)
    both = target.repeat(2, 1)  # as it is, and changed: one pass
    both[1, step] = (both[1, step] + 1) % translator.tokenizer.get_vocab_size()
    before, after = translator.model(source.repeat(2, 1), both, valid_lens.repeat(2))[:, :step]
    return float((before - after).abs().max()) if step else 0.0


@torch.inference_mode()
def position_wise_error(encoder: TransformerEncoder, num_positions: int = 8) -> float:
    """max difference between the first feed-forward net's outputs for one vector put at several positions."""
    twins = encoder.embedding.weight[:1].expand(1, num_positions, -1)
    outputs = encoder.blocks[0].ffn(twins)
    return float((outputs - outputs[:, :1]).abs().max())


@torch.inference_mode()
def encoder_walk(translator: Translator, translation: Translation) -> tuple[tuple[Step, ...], dict[str, float]]:
    """Every step of the encoder for this sentence, and residuals against the encoder's own output.

    "walk": the last step against the encoder's own output; "twin": one vector at several positions.
    """
    encoder = translator.model.encoder
    source = torch.tensor([translation.source_ids], device=translator.device)
    steps = encoder_steps(encoder, source)
    error = float((steps[-1].output - encoder(source)).abs().max())
    return steps, {"walk": error, "twin": position_wise_error(encoder)}
