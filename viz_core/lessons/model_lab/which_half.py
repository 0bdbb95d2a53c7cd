"""Encoder or decoder: whether a position depends on the words that it predicts."""

import math

from viz_core.hub import HubModel
from viz_core.hub.kinds.decoder import DecoderKind

TEXTS = "We are going to the library.", "We are going to the station."
"""Two sentences that differ in one word, which is one token to each model here."""


def leak(model: HubModel, texts: tuple[str, str] = TEXTS) -> float:
    """max |y - y'| over the places before the first token in which two texts differ; 0 where no place sees ahead.

    Of an encoder, y are its states; of a decoder, its logits. An encoder-decoder reads the whole text and writes it.
    """
    if model.engine.stack is None:
        runs = [model.run(text, target=texts[0]) for text in texts]
    elif model.engine.writes():
        runs = [model.run(text, max_new_tokens=0) for text in texts]
    else:
        runs = [model.run(text) for text in texts]
    ids = [[token.id for token in run.tokens] for run in runs]
    shared = next((i for i, pair in enumerate(zip(*ids, strict=False)) if pair[0] != pair[1]), 0)
    return float((runs[0].output[:shared] - runs[1].output[:shared]).abs().max())


def perplexity(model: HubModel, text: str) -> tuple[float, int]:
    """Perplexity exp(-mean log p) of a text's tokens after the first, and their number.

    (Dive into Deep Learning, section 9.3; one pass of a causal decoder gives all of them.)
    """
    if not isinstance(model.engine, DecoderKind):
        raise ValueError(f"model: expected a decoder, got an {model.card.kind}")
    run = model.run(text, max_new_tokens=0)
    later = [token.id for token in run.tokens[1:]]
    chances = run.output.log_softmax(dim=-1)[range(len(later)), later]
    return math.exp(-float(chances.mean())), len(later)
