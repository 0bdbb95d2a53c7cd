"""The step of a search: the same numbers as the decoder's, and the decoder itself where something looks inside."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from unittest.mock import patch

import pytest
import torch
import torch.nn.functional as F
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


def half_model(**options: bool) -> EncoderDecoder:
    """A random model whose weights are float16 numbers, as those that ship."""
    return random_model(**options).half().float()


def packed(model: EncoderDecoder, rows: int = 1) -> bool:
    """Whether a step reads the matrices as float16."""
    product, _ = decoding_step._products(model.decoder, rows)
    return product is not F.linear


def check_step(model: EncoderDecoder, lengths: Sequence[int] = (5, 3)) -> None:
    lens = torch.tensor(lengths)
    step, state, encoded = begun(model, lens)
    tokens = torch.full((len(lengths), 1), 2)
    expected, _ = model.decoder(tokens, model.decoder.init_state(encoded, lens))
    torch.testing.assert_close(step(tokens, state)[0], expected, atol=1e-5, rtol=1e-5)


def has_half_product() -> bool:
    return decoding_step._pack([torch.ones(2, 2)]) is not None


@pytest.mark.skipif(not has_half_product(), reason="torch has no product with float16 weights for this processor")
class TestHalfWeights:
    @pytest.mark.parametrize("use_bias", [False, True])
    @torch.no_grad()
    def test_float16_numbers_are_read_as_float16(self, use_bias: bool) -> None:
        model = half_model(use_bias=use_bias)
        assert packed(model)
        check_step(model)
        check_step(model, [5] * 9)

    @pytest.mark.parametrize("number", [1 + 2.0**-11, 1e5, 1e-9, float("nan")])
    @torch.no_grad()
    def test_other_numbers_are_read_as_they_are(self, number: float) -> None:
        model = half_model()
        model.decoder.dense.weight[0, 0] = number
        assert not packed(model)

    @torch.no_grad()
    def test_a_changed_weight_is_packed_again(self) -> None:
        model = half_model()
        assert packed(model)
        model.decoder.blks[1].attention1.W_v.weight.mul_(-2)
        check_step(model)
        ffn = model.decoder.blks[0].ffn
        ffn.dense1.weight = nn.Parameter(4 * ffn.dense1.weight.clone())
        check_step(model)
        ffn.dense1.weight.data = -2 * ffn.dense1.weight.data
        check_step(model)
        assert packed(model)


def hooked(model: EncoderDecoder) -> AbstractContextManager[object]:
    return model.decoder.blks[1].ffn.dense1.register_forward_hook(lambda _part, _given, output: 2 * output)


def replaced(model: EncoderDecoder) -> AbstractContextManager[object]:
    class Doubled(nn.Linear):
        def forward(self, X: Tensor) -> Tensor:
            return 2 * super().forward(X)

    old = model.decoder.blks[0].attention1.W_v
    model.decoder.blks[0].attention1.W_v = Doubled(old.in_features, old.out_features)
    return nullcontext()


WATCHED: dict[str, Callable[[EncoderDecoder], AbstractContextManager[object]]] = {
    "training": lambda model: nullcontext(model.train()),
    "a hook": hooked,
    "another module": replaced,
    "another forward": lambda model: patch.object(model.decoder.blks[0].ffn, "forward", lambda X: X),
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


@pytest.mark.parametrize("options", [{"norm_first": True}, {"num_key_heads": 1}, {"window": 2}, {"softcap": 3}])
def test_a_decoder_of_another_kind_runs_itself(options: dict[str, float]) -> None:
    decoder = TransformerDecoder(9, 8, 12, 2, 2, 0.0, options=BlockOptions(**options)).eval()
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
