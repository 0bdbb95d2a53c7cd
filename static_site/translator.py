"""The pages of the shipped translator and of its walk, and its two ONNX graphs, which also return queries and keys.

encoder   source (1, n), gates -> the queries and keys of each encoder layer, and the keys and values that each
          decoder layer attends to
decoder   tokens (b, t), gates, rows, keys and values so far -> logits, log p, queries, and keys and values with these t
          steps

Both also return the states of each layer, which the page of the walk shows.

With no step so far the decoder is the teacher-forced pass, with t = 1 a step of greedy search, with b > 1 one of beam
search. A gate multiplies the output of its head before W_o: 1 leaves it, 0 switches it off (Michel 2019, equation 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.utils.hooks import RemovableHandle

from static_site.files import SiteFiles, add_model
from static_site.model_files import WeightStore, export_graph, tokenizer_json
from static_site.pages import PAGES, Words, model_data, model_page
from ui.widgets.walk import encode_walk, walk_links, walk_words
from viz_core.attention.multi_head import KeysValues, MultiHeadAttention
from viz_core.lab.walk import walk_translation
from viz_core.models.encoder_decoder import EncoderDecoder
from viz_core.models.transformer import TransformerEncoder
from viz_core.models.transformer_decoder import BlockCache, DecoderState, TransformerDecoder
from viz_core.positional.sinusoidal import sinusoidal_rows
from viz_core.pretrained import Translator, load
from viz_core.pretrained.samples import BOOK_SENTENCES, sentence, sentences
from viz_core.trace import Trace


class EncoderGraph(nn.Module):
    """The encoder with the projections of the decoder's cross-attention."""

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__()
        self.encoder: TransformerEncoder = model.encoder
        self.decoder: TransformerDecoder = model.decoder

    def forward(self, source: Tensor, gates: Tensor) -> dict[str, Tensor]:
        """Return queries, keys and values (1, heads, n, d) of each layer, those of each cross-attention, and states."""
        layers = [block.attention for block in self.encoder.blocks]
        modules: dict[str, nn.Module] = {"encoder.embedding": self.encoder.pos_encoding}
        for i, block in enumerate(self.encoder.blocks):
            modules |= _modules_of(f"encoder.{i}", block, self=(block.attention, block.addnorm1))
            modules |= projections(f"encoder.{i}.self", block.attention, "keys", "values")
            modules[f"encoder.{i}.output"] = block.addnorm2
        with (
            positions_in(self.encoder, 0),
            gated([layer.W_o for layer in layers], gates),
            outputs(modules, layers[0].head_dim) as found,
        ):
            states = self.encoder(source)
        for i, crossing in enumerate(block.attention2 for block in self.decoder.blocks):
            keys, values = crossing.project(states, states)
            found |= {f"decoder.{i}.cross.keys": keys, f"decoder.{i}.cross.values": values}
        return found


class DecoderGraph(nn.Module):
    """The decoder with its cache as inputs and outputs."""

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__()
        self.decoder: TransformerDecoder = model.decoder

    def forward(
        self, tokens: Tensor, gates: Tensor, rows: Tensor, past: list[Tensor], crossed: list[Tensor]
    ) -> dict[str, Tensor]:
        """Return logits and log p (b, t, vocab), each layer's own queries, keys, values and cross-queries, and states.

        Args:
            gates: (2, layers, heads), of self- and cross-attention.
            rows: (b,), the row of `past` that each row of tokens continues.
            past: keys and values (rows, heads, p, d) of each layer's self-attention so far.
            crossed: keys and values (1, heads, n, d) of each layer's cross-attention.
        """
        blocks = self.decoder.blocks
        batch = tokens.shape[0]
        caches = tuple(
            BlockCache(
                KeysValues(*(tensor[rows] for tensor in past[2 * i : 2 * i + 2])),
                KeysValues(*(tensor.expand(batch, -1, -1, -1) for tensor in crossed[2 * i : 2 * i + 2])),
            )
            for i in range(len(blocks))
        )
        modules: dict[str, nn.Module] = {"decoder.embedding": self.decoder.pos_encoding}
        for i, block in enumerate(blocks):
            attentions = {"self": (block.attention1, block.addnorm1), "cross": (block.attention2, block.addnorm2)}
            modules |= _modules_of(f"decoder.{i}", block, **attentions) | {f"decoder.{i}.output": block.addnorm3}
        own, cross = ([getattr(block, name) for block in blocks] for name in ("attention1", "attention2"))
        gates_on = gated([layer.W_o for layer in (*own, *cross)], gates.flatten(0, 1))
        with positions_in(self.decoder, past[0].shape[2]), gates_on, outputs(modules, own[0].head_dim) as found:
            # The encoder's output is in `crossed` already.
            logits, state = self.decoder(tokens, DecoderState(torch.zeros(1), None, caches))
        for i in range(len(blocks)):
            keys_values = state.caches[i].own
            found |= {f"decoder.{i}.self.keys": keys_values.keys, f"decoder.{i}.self.values": keys_values.values}
        return {"logits": logits, "log_p": logits.log_softmax(dim=-1), **found}


def _modules_of(name: str, block: Any, **attentions: tuple[MultiHeadAttention, nn.Module]) -> dict[str, nn.Module]:
    """The modules whose outputs are queries or the states (b, n, width) of a walk, by the names of these."""
    modules: dict[str, nn.Module] = {f"{name}.neurons": block.ffn.relu, f"{name}.ffn": block.ffn}
    for kind, (attention, addnorm) in attentions.items():
        modules |= {f"{name}.{kind}.added": attention.W_o, f"{name}.{kind}.state": addnorm}
        modules |= projections(f"{name}.{kind}", attention)
    return modules


def projections(name: str, attention: MultiHeadAttention, *others: str) -> dict[str, nn.Module]:
    """The projection of an attention's queries, and others, by name: `record` sees nothing under torch.export."""
    return {f"{name}.{part}": getattr(attention, f"W_{part[0]}") for part in ("queries", *others)}


def positions_in(stack: TransformerEncoder | TransformerDecoder, offset: int) -> RemovableHandle:
    """Compute positions from `offset` on, instead of reading them from the table, which so need not be loaded."""

    def add(_module: nn.Module, inputs: tuple[Tensor], _output: Tensor) -> Tensor:
        (embedded,) = inputs
        return embedded + sinusoidal_rows(torch.arange(offset, offset + embedded.shape[1]), embedded.shape[2])

    return stack.pos_encoding.register_forward_hook(add)


@contextmanager
def outputs(modules: dict[str, nn.Module], head_dim: int) -> Iterator[dict[str, Tensor]]:
    """Collect what modules return, by their names; projections as (b, heads, n, d); and inputs of W_o and positions."""
    found: dict[str, Tensor] = {}

    def split(joined: Tensor) -> Tensor:
        return joined.unflatten(2, (-1, head_dim)).transpose(1, 2)

    def keep(name: str) -> Any:
        def hook(_module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            stem, _, kind = name.rpartition(".")
            found[name] = split(output) if kind in ("queries", "keys", "values") else output
            if kind == "added":
                found[f"{stem}.joined"], found[f"{stem}.outputs"] = inputs[0], split(inputs[0])
            if kind == "embedding":
                found[f"{stem}.embedded"], found[f"{stem}.positions"] = inputs[0], output - inputs[0]

        return hook

    with ExitStack() as hooks:
        for name, module in modules.items():
            hooks.enter_context(module.register_forward_hook(keep(name)))
        yield found


@contextmanager
def gated(matrices: Sequence[nn.Module], gates: Tensor) -> Iterator[None]:
    """Multiply the output of each head by its gate before the matrix W_o of its layer."""

    def multiply(gate: Tensor) -> Any:
        return lambda _module, inputs: (inputs[0] * gate.repeat_interleave(inputs[0].shape[-1] // len(gate)),)

    with ExitStack() as hooks:
        for i, matrix in enumerate(matrices):
            hooks.enter_context(matrix.register_forward_pre_hook(multiply(gates[i])))
        yield


def export_translator(model: EncoderDecoder) -> tuple[dict[str, bytes], WeightStore]:
    """Return the graphs "encoder" and "decoder" of a Transformer, and the weights that they share."""
    encoder = model.encoder
    layers, heads = len(encoder.blocks), encoder.blocks[0].attention.num_heads
    size = encoder.blocks[0].attention.head_dim
    store, free = WeightStore(), Dim.DYNAMIC
    crossed = [f"decoder.{i}.cross.{part}" for i in range(layers) for part in ("keys", "values")]
    past = [f"past.{i}.{part}" for i in range(layers) for part in ("keys", "values")]
    graphs = {
        "encoder": export_graph(
            EncoderGraph(model),
            (torch.arange(4, 11)[None], torch.ones(layers, heads)),
            ({1: free}, None),
            ["source", "gates"],
            store,
        ),
        "decoder": export_graph(
            DecoderGraph(model),
            (
                torch.arange(4, 10).reshape(2, 3),
                torch.ones(2, layers, heads),
                torch.tensor([2, 0]),
                [torch.randn(3, heads, 5, size) for _ in past],
                [torch.randn(1, heads, 7, size) for _ in crossed],
            ),
            ({0: free, 1: free}, None, {0: free}, [{0: free, 2: free}] * len(past), [{2: free}] * len(crossed)),
            ["tokens", "gates", "rows", *past, *crossed],
            store,
        ),
    }
    return graphs, store


NAME = "transformer-en-fr"
BEAMS = (1, 4)
EXAMPLE = sentence("cat")
PROBLEMS = {
    "too-long": "This text has {count:,} characters; at most {most:,} can be translated.",
    "empty": "There is nothing to translate yet: type an English sentence.",
    "unknown": "The model knows no word or sign in this text. It was trained on English in Latin letters.",
    "too-many": "This text has {count:,} tokens; the model takes at most {most:,}. Shorten it.",
}


def load_model() -> Translator:
    """The translator on the CPU."""
    translator = load(NAME, device="cpu")
    assert isinstance(translator, Translator)
    return translator


def add_files(files: SiteFiles, translator: Translator) -> dict[str, Any]:
    """Add the translator's graphs, weights and tokenizer."""
    graphs, store = export_translator(translator.model)
    return add_model(files, NAME, graphs, store, tokenizer=tokenizer_json(translator.tokenizer))


def page(words: Words) -> dict[str, Any]:
    """The translator's parts of the page."""
    named = {beam: words("transformer")(f"option.{'greedy' if beam == 1 else f'beam {beam}'}") for beam in BEAMS}
    selects = {"beam": (words("transformer").label("search"), named)}
    return page_of("transformer", words, "translation") | {"selects": selects, "lang": "fr"}


def page_of(name: str, words: Words, of_hint: str) -> dict[str, Any]:
    """A page with a sentence to translate."""
    examples = [each.english for each in sentences()[BOOK_SENTENCES:]]
    own = {"name": name, "chapter": name, "title": words(name).title, "text": words(name).label("text")}
    hint, button = words(of_hint)("placeholder"), words("translation")("translate")
    return own | {"placeholder": hint, "button": button, "examples": examples}


def recorded(_words: Words, translator: Translator) -> tuple[dict[str, Any], Trace]:
    """The translation of the example, as `translate` of translator.js returns it."""
    found = translator.translate(EXAMPLE)
    names = product(("source", "target", "decoder"), ("tokens", "words"))
    return {
        **{f"{side}{part.title()}": getattr(found, f"{side}_{part}") for side, part in names},
        "text": found.text,
        "sourceText": found.made.text,
        "source": found.source_ids,
        "target": found.target_ids,
        "logProbability": found.log_probability,
        "cacheError": found.cache_error,
        "numUnknown": found.num_unknown,
        "isComplete": found.complete,
    }, found.trace


def data(words: Words, translator: Translator) -> dict[str, Any]:
    """What the translator's script reads."""
    alignments = translator.card.training["alignments"]
    errors = np.array([alignments["written"], alignments["read"]])
    _, *shape = errors.shape
    best = np.unravel_index(np.argmin(errors[0]), shape)
    names = (("translation", "measured"), ("translation", "incomplete"), ("translation", "unknown", "unknown-count"))
    heads = dict.fromkeys(("encoder-self", "decoder-self", "cross"), tuple(shape))
    return model_data(words, "translation", heads, PROBLEMS, *names) | {
        "errors": errors.tolist(),
        "open": ".".join(["cross", *map(str, best)]),
        "model": translator.card.name,
        "revision": translator.card.revision,
        "example": EXAMPLE,
        "beams": BEAMS,
    }


_EDIT = ("hide-key", "show-key")
"""Words for what the graphs cannot do; without them the component does not offer it."""


def walk_page(files: SiteFiles, words: Words, translator: Translator, own: dict[str, Any]) -> str:
    """The page of the walk, which opens with its first picture recorded; `own` is the data of the translator's page."""
    chapter, text = words("walk"), EXAMPLE
    texts: dict[str, Any] = {
        "words": {name: word for name, word in walk_words(chapter).items() if name not in _EDIT},
        "links": {
            stage: (f"{PAGES.get(link[2:], link[2:])}.html", title)
            for stage, (link, title) in walk_links(chapter).items()
        },
        "language": words.language,
    }
    walk = walk_translation(translator, text)
    first = encode_walk(walk, key=f"{text} ", kind="translator", block=(0, None), edits=(), before=None, **texts)
    data = model_data(words, "translation", {}, PROBLEMS) | {
        "texts": texts,
        "example": text,
        "recorded": files.add(f"models/recorded/walk.{words.language}.bin", first),
        **{name: own[name] for name in ("files", "heads", "errors", "open")},
    }
    return model_page(words, page_of("walk", words, "walk"), data, "walk")
