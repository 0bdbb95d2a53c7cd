"""The walk through a model of the hub that continues a text."""

from collections.abc import Sequence

import torch

from viz_core.hub.model import HubModel
from viz_core.hub.runs.generation import Sampling
from viz_core.hub.runs.token_text import Token
from viz_core.trace import intervene, record
from viz_core.walk.observe import blocks_of, state_of
from viz_core.walk.steps import Edits, Stack, Walk, choice_among, walk_edits


@torch.inference_mode()
def walk_writing(
    model: HubModel, text: str, new_tokens: int = 4, sampling: Sampling | None = None, edits: Edits = ()
) -> Walk:
    """Walk through a Llama that continues a text: one pass over the text and what it wrote.

    Its mask is causal, so the first rows are those of each earlier step.

    Raises:
        HubError: if the text is empty or too long.
        ValueError: if the model is no decoder of Llama's form, or an edit is not one of `Edits`.
    """
    if not hasattr(model.network, "model") or not hasattr(model.network.model, "embed_tokens"):
        raise ValueError(f"walk_writing: expected a model of Llama's form, got {type(model.network).__name__}")
    sampling = sampling or Sampling()
    with intervene(walk_edits(edits)):
        run = model.run(text, max_new_tokens=new_tokens, sampling=sampling)
    with model.engine.serial, record(values=True, states=True) as trace, intervene(walk_edits(edits)):
        logits = model.network(**run.inputs).logits[0].float().cpu()
    tokens = _words(run.tokens)
    given = run.num_prompt_tokens
    ids = [int(i) for i in run.inputs["input_ids"][0]]
    names = lambda some: _words(model.read(some))  # noqa: E731
    options = {"temperature": sampling.temperature, "top_k": sampling.top_k}
    choices = [choice_among(logits[i - 1], ids[i], names, **options) for i in range(given, len(ids))]
    if not choices:  # it only read: what it would write
        choices = [choice_among(logits[-1], int(logits[-1].argmax()), names, **options)]
    stack = Stack("decoder", tokens, state_of(trace, "decoder.embedding"), None, blocks_of("decoder", trace))
    return Walk((stack,), tuple(choices), given, float((logits[-len(run.output) :] - run.output).abs().max()))


def _words(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return tokens without the mark of a space before them."""
    return tuple(token.label.removeprefix("·") or token.label for token in tokens)
