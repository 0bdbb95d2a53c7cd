"""A sentence translated step by step, and by transformers' generate, both with cached keys and values."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from benchmarks.random_models import BOS, PAD, marian, our_translator, random_tokens
from benchmarks.report import Row
from benchmarks.sampling import in_turns, milliseconds
from viz_core.models.encoder_decoder import EncoderDecoder
from viz_core.pretrained.decoding import greedy_search
from viz_core.pretrained.tokenization import SpecialTokens

SIZES = (12, 48, 192)  # tokens of the sentence, and of its translation
QUICK = {"sizes": (4,), "samples": 1}
NEVER = -1  # no token has this number: every sentence gets the length asked for


def measure(sizes: Sequence[int] = SIZES, samples: int = 9) -> list[Row]:
    """Milliseconds a sentence, greedily, three blocks of 256 on each side; random weights of one size."""
    ours, peer = our_translator(), marian()
    rows = []
    for n in sizes:
        source = random_tokens(n)
        calls = {
            "cache": lambda source=source: with_cache(ours, source),
            "generate": lambda source=source: by_generate(peer, source),
        }
        times = milliseconds(in_turns(calls, samples=samples, max_seconds=25))
        rows.append(
            Row(f"translate {n} tokens into {n}", "ms", times["cache"], "transformers generate", times["generate"])
        )
    return rows


def with_cache(model: EncoderDecoder, source: Tensor) -> Tensor:
    """(1, n) tokens, as the app translates."""
    lens = torch.tensor([source.shape[1]])
    return torch.tensor(greedy_search(model, source, lens, SpecialTokens(PAD, BOS, NEVER), source.shape[1]))


def by_generate(model: Any, source: Tensor) -> Tensor:
    """So many tokens by transformers, greedily, with its cache."""
    written = model.generate(
        input_ids=source,
        attention_mask=torch.ones_like(source),
        max_new_tokens=source.shape[1],
        do_sample=False,
        num_beams=1,
        use_cache=True,
    )
    return written[:, 1:]
