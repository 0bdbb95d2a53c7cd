"""One recorded pass of the shipped translator, classifiers and writer, with every state on the way, as arrays."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Bool
from PIL import Image
from torch import Tensor

from viz_core.hub import HubModel, Sampling, Token
from viz_core.lab.walk_records import Attention, Block, Edits, Stack, Walk, choice_among, walk_edits
from viz_core.maps.alignments import HeadErrors, best_aligner
from viz_core.maps.fingerprints import RESTING, Fingerprint, clearest_head, measure_maps, pattern_of, with_accuracies
from viz_core.maps.head_measure import MapInfo
from viz_core.maps.measures import Patches
from viz_core.maps.word_maps import separators
from viz_core.pretrained import ImageClassifier, Translator
from viz_core.trace import AttentionCall, Trace, head_outputs, intervene, record
from viz_core.trace.source import Projected


def state_of(trace: Trace, name: str) -> np.ndarray:
    """Return a state of the only text of the batch."""
    return as_array(trace.states[name][0])


def blocks_of(stack: str, trace: Trace) -> tuple[Block, ...]:
    """Return the blocks of a stack that a pass went through."""
    before, blocks = state_of(trace, f"{stack}.embedding"), list[Block]()
    while (name := f"{stack}.{len(blocks)}") + ".residual" in trace.states:
        attentions = tuple(_attention(call, trace) for call in trace if call.site.startswith(f"{name}."))
        states = (state_of(trace, f"{name}.{part}") for part in ("neurons", "mlp", "residual"))
        blocks.append(Block(before, attentions, *states))
        before = blocks[-1].output
    return tuple(blocks)


def _attention(call: AttentionCall, trace: Trace) -> Attention:
    """Return one call of attention as arrays, with the states around it."""
    source, outputs, layer = call.source, head_outputs(call)[0], call.site.rpartition(".")[0]
    part = "cross" if call.kind == "cross" else "attention"
    assert isinstance(source, Projected)  # as all shipped models compute it
    keys = source.keys.repeat_interleave(call.num_heads // source.keys.shape[1], dim=1)
    scores = (source.queries.float() @ keys.float().mT) * source.scale
    return Attention(
        call.site,
        as_array(source.queries[0]),
        as_array(source.keys[0]),
        as_array(call.values[0]),
        as_array(scores[0]),
        _allowed(source)[0].cpu().numpy(),
        as_array(call.weights()[0]),
        as_array(outputs),
        as_array(rearrange(outputs, "h n v -> n (h v)")),
        state_of(trace, f"{layer}.{part}"),
        state_of(trace, f"{layer}.residual_{part}"),
    )


def opening_heads(
    calls: Sequence[Attention], keys: Sequence[str], errors: HeadErrors = (), patches: Patches | None = None
) -> tuple[int, tuple[tuple[int, str | None], ...]]:
    """Return the layer to show first, and the head of each layer with its pattern, all counted from 0.

    The head is the clearest of its layer, else the one that rests least; the layer is that of the clearest head.

    Args:
        calls: one of each layer.
        keys: the tokens that are attended to.
        errors: alignment error rates of cross-attention; the layer is then that of the best aligner.
        patches: where the tokens lie on a picture.
    """
    _, rows, columns = calls[0].weights.shape
    info = MapInfo(rows, columns, not calls[0].crosses, separators(keys), patches)
    layers = [measure_maps(torch.from_numpy(call.weights), info) for call in calls]
    if errors:
        layers = [with_accuracies(*each) for each in zip(layers, errors, strict=True)]
    layer, _ = clearest_head(layers) or (0, 0)
    return best_aligner(errors, "written")[1] if errors else layer, tuple(map(_opening_head, layers))


def _opening_head(heads: Sequence[Fingerprint]) -> tuple[int, str | None]:
    resting = [sum(head.get(name, 0.0) for name in RESTING) for head in heads]
    _, head = clearest_head([heads]) or (0, resting.index(min(resting)))
    return head, pattern_of(heads[head])


def _allowed(source: Projected) -> Bool[Tensor, "batch heads rows columns"]:
    """Return where a query may attend to a key; as without edits for a head that is switched off."""
    _, heads, rows, _ = source.shape
    edited, own = (
        each.scores(slice(0, heads), slice(0, rows)).isfinite() for each in (source, replace(source, edits=None))
    )
    return torch.where(edited.any(dim=(-2, -1), keepdim=True), edited, own)


def as_array(values: Tensor) -> np.ndarray:
    """Return a tensor as float32 on the CPU."""
    return values.float().cpu().numpy()


@torch.inference_mode()
def walk_translation(model: Translator, text: str, edits: Edits = ()) -> Walk:
    """Walk through a shipped Transformer that translates a text: the encoder, then the decoder over all its steps.

    The choices are those of the second half, where there are words to attend to.
    """
    with intervene(walk_edits(edits)):
        done = model.translate(text)
        source, target, lengths = model.teacher_forced(done.source_ids, done.target_ids)
        own = model.model(source, target, lengths)
    encoder, decoder = model.model.encoder, model.model.decoder
    with record(values=True, states=True) as trace, intervene(walk_edits(edits)):
        logits = model.model(source, target, lengths)[0].float().cpu()
    stacks = []
    for name, tokens, embedded in (
        ("encoder", done.source_tokens, as_array(encoder.embed(source)[0])),
        ("decoder", done.decoder_tokens, as_array(decoder.embed(target)[0])),
    ):
        positions = state_of(trace, f"{name}.embedding") - embedded
        stacks.append(Stack(name, tokens, embedded, positions, blocks_of(name, trace)))
    chosen = zip(logits, done.target_ids, strict=True)
    choices = tuple(choice_among(row, token, model.readable_tokens) for row, token in chosen)
    given = (len(choices) + 1) // 2
    residual = float((logits - own[0].float().cpu()).abs().max())
    return Walk(tuple(stacks), choices[given - 1 :], given, residual, alignment_errors=done.alignment_errors)


@torch.inference_mode()
def walk_picture(model: ImageClassifier, image: Image.Image, edits: Edits = ()) -> Walk:
    """Walk through a shipped ViT that classifies a picture. ValueError if an edit is not one of `Edits`."""
    prepared = model.prepare(image)
    X = prepared.pixels.to(model.device)
    with intervene(walk_edits(edits)):
        own = model.model(X)[0].float().cpu()
    with record(values=True, states=True) as trace, intervene(walk_edits(edits)):
        logits = model.model(X)[0].float().cpu()
    rows, columns = model.model.patch_embedding.grid(X)
    patches = tuple(f"r{row + 1}c{column + 1}" for row in range(rows) for column in range(columns))
    embedded = as_array(model.model.embed(X, positions=False)[0])
    positions = state_of(trace, "encoder.embedding") - embedded
    stack = Stack("encoder", ("class", *patches), embedded, positions, blocks_of("encoder", trace))
    choice = choice_among(logits, int(logits.argmax()), lambda some: [model.labels[i] for i in some])
    residual = float((logits - own).abs().max())
    return Walk((stack,), (choice,), len(stack.tokens), residual, (prepared.seen, (rows, columns)))


@torch.inference_mode()
def walk_writing(
    model: HubModel, text: str, new_tokens: int = 4, sampling: Sampling | None = None, edits: Edits = ()
) -> Walk:
    """Walk through a Llama that continues a text: one pass over the text and what it wrote.

    Its mask is causal, so the first rows are those of each earlier step.
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
