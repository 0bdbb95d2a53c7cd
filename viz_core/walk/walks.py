"""One recorded pass of the shipped translator and classifiers, with every state on the way."""

import torch
from PIL import Image

from viz_core.pretrained import ImageClassifier, Translator
from viz_core.trace import intervene
from viz_core.walk.observe import BlockPaths, as_array, blocks_of, observing
from viz_core.walk.steps import Edits, Stack, Walk, choice_among, walk_edits


@torch.inference_mode()
def walk_translation(model: Translator, text: str, edits: Edits = ()) -> Walk:
    """Walk through a shipped Transformer that translates a text: the encoder, then the decoder over all its steps.

    The choices are those of the second half, where there are words to attend to.

    Raises:
        TextError: if the text is empty, too long, or wholly unknown.
        ValueError: if an edit is not one of `Edits`.
    """
    with intervene(walk_edits(edits)):
        done = model.translate(text)
        source, target, lengths = model.teacher_forced(done.source_ids, done.target_ids)
        own = model.model(source, target, lengths)
    encoder, decoder = model.model.encoder, model.model.decoder
    paths = {
        "encoder": [_encoder_block(i) for i in range(len(encoder.blks))],
        "decoder": [_decoder_block(i) for i in range(len(decoder.blks))],
    }
    parts = [f"{stack}.pos_encoding" for stack in paths] + ["decoder.dense"]
    with observing(model.model, parts, paths, edits) as (twin, seen, trace):
        twin(source, target, lengths)
    logits = seen.outputs["decoder.dense"][0].float().cpu()
    stacks = []
    for name, tokens in (("encoder", done.source_tokens), ("decoder", done.decoder_tokens)):
        embedded, positioned = seen.of(f"{name}.pos_encoding", "in"), seen.of(f"{name}.pos_encoding")
        stacks.append(Stack(name, tokens, embedded, positioned - embedded, blocks_of(paths[name], seen, trace)))
    chosen = zip(logits, done.target_ids, strict=True)
    choices = tuple(choice_among(row, token, model.readable_tokens) for row, token in chosen)
    given = (len(choices) + 1) // 2
    return Walk(tuple(stacks), choices[given - 1 :], given, float((logits - own[0].float().cpu()).abs().max()))


@torch.inference_mode()
def walk_picture(model: ImageClassifier, image: Image.Image, edits: Edits = ()) -> Walk:
    """Walk through a shipped ViT that classifies a picture.

    Raises:
        ValueError: if an edit is not one of `Edits`.
    """
    prepared = model.prepare(image)
    X = prepared.pixels.to(model.device)
    with intervene(walk_edits(edits)):
        own = model.model(X)[0].float().cpu()
    paths = {"encoder": [_vit_block(i) for i in range(len(model.model.blks))]}
    with observing(model.model, ["head"], paths, edits) as (twin, seen, trace):
        twin(X)
    logits = seen.outputs["head"][0].float().cpu()
    rows, columns = model.model.patch_embedding.grid(X)
    patches = tuple(f"r{row + 1}c{column + 1}" for row in range(rows) for column in range(columns))
    embedded = as_array(model.model.embed(X, positions=False)[0])
    positions = as_array(model.model.embed(X)[0]) - embedded
    stack = Stack("encoder", ("class", *patches), embedded, positions, blocks_of(paths["encoder"], seen, trace))
    choice = choice_among(logits, int(logits.argmax()), lambda some: [model.labels[i] for i in some])
    residual = float((logits - own).abs().max())
    return Walk((stack,), (choice,), len(stack.tokens), residual, (prepared.seen, (rows, columns)))


def _encoder_block(i: int) -> BlockPaths:
    path = f"encoder.blks.block{i}"
    attention = (f"encoder.{i}.self", f"{path}.attention.W_o", f"{path}.addnorm1", "out")
    return BlockPaths(path, (attention,), f"{path}.ffn.dense2", f"{path}.ffn")


def _decoder_block(i: int) -> BlockPaths:
    path = f"decoder.blks.block{i}"
    own = (f"decoder.{i}.self", f"{path}.attention1.W_o", f"{path}.addnorm1", "out")
    cross = (f"decoder.{i}.cross", f"{path}.attention2.W_o", f"{path}.addnorm2", "out")
    return BlockPaths(path, (own, cross), f"{path}.ffn.dense2", f"{path}.ffn")


def _vit_block(i: int) -> BlockPaths:
    path = f"blks.{i}"
    attention = (f"encoder.{i}.self", f"{path}.attention.W_o", f"{path}.ln2", "in")
    return BlockPaths(path, (attention,), f"{path}.mlp.dense2", f"{path}.mlp")
