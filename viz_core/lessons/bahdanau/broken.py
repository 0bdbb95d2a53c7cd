"""Additive attention with deliberate errors."""

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.lessons.bahdanau.decoder_steps import decoder_steps, step_scores
from viz_core.pretrained import Translation, Translator


@torch.inference_mode()
def wrong_weights(
    translator: Translator, translation: Translation, error: str
) -> tuple[Float[Tensor, "steps keys"], float]:
    """Weights of each step with an error, 0 for keys that are never attended to, and by how much a claim then fails.

    "undivided": exp(e_tj), and max |sum_j exp(e_tj) - 1|. "no-tanh": softmax over j of w_v^T (W_q s_(t-1) + W_k h_j), a
    sum in which the query cancels, and max |a_tj recorded - that|.
    """
    recorded = translation.trace["decoder.0.cross"].weights(head=0)[0].double()
    divided = error == "no-tanh"
    bend = torch.nn.Identity() if divided else torch.nn.Tanh()
    scores = step_scores(translator, translation, decoder_steps(translator, translation), bend)
    weights = torch.zeros_like(recorded)
    weights[:, : scores.shape[1]] = scores.softmax(dim=1) if divided else scores.exp()
    off = recorded - weights if divided else weights.sum(dim=1) - 1
    return weights, float(off.abs().max())
