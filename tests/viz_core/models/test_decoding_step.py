"""The step of a search: the same numbers as the decoder's, and the decoder itself where something looks inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
import torch
from torch import Tensor, nn

from tests.viz_core.models.test_transformer import VOCAB, random_ids, random_model
from viz_core.models import EncoderDecoder, TransformerDecoder, decoding_step
from viz_core.models.decoding_step import StepState, begin_decoding
from viz_core.models.transformer import BlockOptions
from viz_core.pretrained import load_translator
from viz_core.pretrained.samples import held_out
from viz_core.trace import intervene, off, record, zero


def begun(model: EncoderDecoder, lengths: Tensor) -> tuple[Callable[..., tuple[Tensor, object]], object, Tensor]:
    encoded = model.encoder(random_ids(len(lengths), 5), lengths)
    return *begin_decoding(model.decoder, encoded, lengths), encoded


@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize("lengths", [[5], [3], [5, 3, 1], [5, 5, 5]])
@torch.inference_mode()
def test_steps_are_those_of_the_decoder(lengths: list[int], use_bias: bool) -> None:
    model, lens = random_model(use_bias=use_bias), torch.tensor(lengths)
    step, state, encoded = begun(model, lens)
    assert isinstance(state, StepState)
    other = model.decoder.init_state(encoded, lens)
    rows = torch.arange(len(lengths)).flip(0)
    for i in range(6):
        tokens = torch.full((len(lengths), 1), (5 * i + 1) % VOCAB)
        logits, state = step(tokens, state)
        expected, other = model.decoder(tokens, other)
        torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-5)
        state, other = state.select(rows), other.select(rows)


@contextmanager
def in_training(model: EncoderDecoder) -> Iterator[None]:
    model.train()
    yield


@contextmanager
def hooked(model: EncoderDecoder) -> Iterator[None]:
    model.decoder.blks[1].ffn.dense1.register_forward_hook(lambda _part, _given, output: 2 * output)
    yield


@contextmanager
def replaced(model: EncoderDecoder) -> Iterator[None]:
    class Doubled(nn.Linear):
        def forward(self, X: Tensor) -> Tensor:
            return 2 * super().forward(X)

    old = model.decoder.blks[0].attention1.W_v
    model.decoder.blks[0].attention1.W_v = Doubled(old.in_features, old.out_features)
    yield


@contextmanager
def patched(model: EncoderDecoder) -> Iterator[None]:
    ffn = model.decoder.blks[0].ffn
    ffn.forward = lambda X: X
    yield


WATCHED: dict[str, Callable[[EncoderDecoder], AbstractContextManager[object]]] = {
    "training": in_training,
    "a hook": hooked,
    "another module": replaced,
    "another forward": patched,
    "recorded": lambda _model: record(),
    "a head switched off": lambda _model: intervene({"decoder.1.cross": off(0)}),
    "a state edited": lambda _model: intervene({"decoder.0.mlp": zero()}),
    "autocast": lambda _model: torch.autocast("cpu", dtype=torch.bfloat16),
}


@pytest.mark.parametrize("watched", WATCHED)
def test_the_decoder_itself_runs_where_something_looks_inside(watched: str) -> None:
    model, lens = random_model(), torch.tensor([5])
    with WATCHED[watched](model):
        step, state, _ = begun(model, lens)
        for tokens in random_ids(1, 3).split(1, dim=1):
            _, state = step(tokens, state)
    assert step is model.decoder


OPTIONS = [
    BlockOptions(norm_first=True),
    BlockOptions(num_key_heads=1),
    BlockOptions(window=2),
    BlockOptions(softcap=3),
]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_decoder_of_another_kind_runs_itself(options: BlockOptions) -> None:
    decoder = TransformerDecoder(9, 8, 12, 2, 2, 0.0, options=options).eval()
    step, _ = begin_decoding(decoder, torch.randn(1, 4, 8), torch.tensor([4]))
    assert step is decoder


@pytest.mark.parametrize("beam", [1, 4])
def test_the_shipped_translator_finds_the_same_tokens(beam: int, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = load_translator("transformer-en-fr", device="cpu")
    texts = [sample.english for sample in held_out()[::60]]
    ours = [translator.translate(text, beam=beam) for text in texts]
    monkeypatch.setattr(decoding_step, "_is_plain", lambda _decoder: False)
    for text, found in zip(texts, ours, strict=True):
        assert found.target_ids == translator.translate(text, beam=beam).target_ids
        assert found.cache_error < 1e-4


def test_one_sentence_is_encoded_once() -> None:
    translator, calls = load_translator("transformer-en-fr", device="cpu"), []
    handle = translator.model.encoder.register_forward_hook(lambda *_: calls.append(1))
    try:
        sites = translator.translate("He is calm.").trace.sites
    finally:
        handle.remove()
    assert len(calls) == 1
    assert len(sites) == len(set(sites)) == 9
    assert not any("@" in site for site in sites)
