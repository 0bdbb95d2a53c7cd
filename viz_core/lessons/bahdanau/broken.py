"""Additive attention with deliberate errors."""

import torch

from viz_core.lessons.bahdanau.decoder_steps import decoder_steps, step_scores
from viz_core.pretrained import Translation, Translator


@torch.inference_mode()
def without_tanh(translator: Translator, translation: Translation) -> float:
    """max |a_tj recorded - a_tj with e_tj = w_v^T (W_q s_(t-1) + W_k h_j)|: a sum, in which the query cancels."""
    return float((_weights(translation) - weights_without_tanh(translator, translation)).abs().max())


@torch.inference_mode()
def undivided(translator: Translator, translation: Translation) -> float:
    """max |sum_j exp(e_tj) - 1|: what a step's weights add up to if nothing divides them."""
    return float((undivided_weights(translator, translation).sum(dim=1) - 1).abs().max())


@torch.inference_mode()
def weights_without_tanh(translator: Translator, translation: Translation) -> torch.Tensor:
    """softmax over j of w_v^T (W_q s_(t-1) + W_k h_j), a row for each step; 0 for keys that are never attended to."""
    return _in_place(translation, _scores(translator, translation, torch.nn.Identity()).softmax(dim=1))


@torch.inference_mode()
def undivided_weights(translator: Translator, translation: Translation) -> torch.Tensor:
    """exp(e_tj), a row for each step; 0 for keys that are never attended to."""
    return _in_place(translation, _scores(translator, translation, torch.nn.Tanh()).exp())


def _in_place(translation: Translation, weights: torch.Tensor) -> torch.Tensor:
    every_key = torch.zeros_like(_weights(translation))
    every_key[:, : weights.shape[1]] = weights
    return every_key


def _weights(translation: Translation) -> torch.Tensor:
    return translation.trace["decoder.0.cross"].weights(head=0)[0].double()


def _scores(translator: Translator, translation: Translation, bend: torch.nn.Module) -> torch.Tensor:
    return step_scores(translator, translation, decoder_steps(translator, translation), bend)
