"""Generation: greedy, or sampled at a temperature with a generator of its own."""

import copy
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.trace import no_recording


@dataclass(frozen=True)
class Sampling:
    """How the next word is chosen.

    Attributes:
        temperature: 0 takes the likeliest word; else words are drawn from softmax(logits / temperature).
        top_k: only among so many likeliest words; 0 for all.
        top_p: only among the fewest words whose probabilities sum to this; 1 for all (Holtzman 2020).
        seed: the same seed draws the same words, whatever other threads draw.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature <= 100:
            raise ValueError(f"temperature: expected 0 to 100, got {self.temperature}")
        if self.top_k < 0:
            raise ValueError(f"top_k: expected 0 or more, got {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p: expected above 0 and at most 1, got {self.top_p}")


GREEDY = Sampling()


class GumbelNoise:
    """Adds -log(-log u), u uniform, to each logit: the largest sum is then a draw from their softmax.

    So `generate` stays greedy and deterministic, and draws come from a generator of its own
    (Gumbel 1954; the Gumbel-max trick).
    """

    def __init__(self, seed: int) -> None:
        self._random = torch.Generator().manual_seed(seed)

    def __call__(
        self, _: Int[Tensor, "batch tokens"], scores: Float[Tensor, "batch words"]
    ) -> Float[Tensor, "batch words"]:
        uniform = torch.rand(scores.shape, generator=self._random, dtype=torch.float64).clamp_min(1e-300)
        return scores - torch.log(-torch.log(uniform)).to(scores.device, scores.dtype)


def write(
    model: Any,
    inputs: dict[str, Tensor],
    max_new_tokens: int,
    sampling: Sampling = GREEDY,
    max_seconds: float | None = None,
    never: Collection[int] = (),
    watching: Sequence[Callable[[Tensor, Tensor], Tensor]] = (),
    **options: Any,
) -> list[int]:
    """Token ids from `generate`, greedy or sampled, with a cache and without a recording.

    Rules of the model's generation config (forbidden words, forced first tokens) hold; its search does not.

    Args:
        max_seconds: write no more words after so long.
        never: tokens that are not written, whatever their probability: those that stand for patches of a picture.
        watching: logits processors, called at each step with the ids so far and the scores.
        options: further arguments of `generate`.
    """
    from transformers import LogitsProcessorList, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    config = copy.deepcopy(model.generation_config)
    plain = {"num_beams": 1, "do_sample": False, "temperature": None, "top_k": None, "top_p": None, "max_length": None}
    limits = {"max_new_tokens": max_new_tokens, "min_length": 0, "min_new_tokens": None, "max_time": max_seconds}
    search = {"length_penalty": None, "early_stopping": False, "num_return_sequences": 1, "use_cache": True}
    config.update(**plain, **limits, **search)
    if never:
        config.suppress_tokens = [*(config.suppress_tokens or ()), *never]
    if config.pad_token_id is None:  # one text, so never used; but generate warns at every call
        end = config.eos_token_id
        config.pad_token_id = end[0] if isinstance(end, list) else end
    processors = LogitsProcessorList(watching)
    if sampling.temperature > 0:
        processors.append(TemperatureLogitsWarper(sampling.temperature))
        processors += [TopKLogitsWarper(sampling.top_k)] if sampling.top_k else []
        processors += [TopPLogitsWarper(sampling.top_p)] if sampling.top_p < 1 else []
        processors.append(GumbelNoise(sampling.seed))
    with no_recording(), torch.inference_mode():
        found = model.generate(**inputs, generation_config=config, logits_processor=processors, **options)
    return [int(i) for i in getattr(found, "sequences", found)[0]]
