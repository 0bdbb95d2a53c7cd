"""Additive attention with deliberate errors, and an erased source."""

from __future__ import annotations

import torch

from viz_core.lessons.bahdanau.decoder_steps import decoder_steps, step_scores
from viz_core.models.seq2seq import Encoded
from viz_core.pretrained import Translation, Translator


@torch.inference_mode()
def without_tanh(translator: Translator, translation: Translation) -> float:
    """max |a_tj recorded - a_tj with e_tj = w_v^T (W_q s_(t-1) + W_k h_j)|: a sum, in which the query cancels."""
    without = _scores(translator, translation, torch.nn.Identity()).softmax(dim=1)
    return float((_weights(translation)[:, : without.shape[1]] - without).abs().max())


@torch.inference_mode()
def undivided(translator: Translator, translation: Translation) -> float:
    """max |sum_j exp(e_tj) - 1|: what a step's weights add up to if nothing divides them."""
    scores = _scores(translator, translation, torch.nn.Tanh())
    return float((scores.exp().sum(dim=1) - 1).abs().max())


@torch.inference_mode()
def erased_error(translator: Translator, translation: Translation) -> float:
    """max change of the logits of a decoder that attends when all source states but the last are erased."""
    source, target, valid_lens = translator.teacher_forced(translation.source_ids, translation.target_ids)
    model = translator.model
    outputs, hidden_state = model.encoder(source, valid_lens)
    last_only = torch.zeros_like(outputs)
    last_only[:, -1] = outputs[:, -1]
    whole, left = (
        model.decoder(target, model.decoder.init_state(Encoded(each, hidden_state), valid_lens))[0]
        for each in (outputs, last_only)
    )
    return float((whole - left).abs().max())


def _weights(translation: Translation) -> torch.Tensor:
    return translation.trace["decoder.0.cross"].weights(head=0)[0].double()


def _scores(translator: Translator, translation: Translation, bend: torch.nn.Module) -> torch.Tensor:
    return step_scores(translator, translation, decoder_steps(translator, translation), bend)
