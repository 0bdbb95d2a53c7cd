"""The recurrent decoder step by step, heads that look evenly, and multi-head attention taken apart."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from viz_core.attention import MultiHeadAttention
from viz_core.lessons.bahdanau import decoder_steps, erased_error, weights_by_formula
from viz_core.lessons.heads import uniform_masses
from viz_core.lessons.multi_head import (
    book_toy,
    fresh_layer,
    is_separator,
    mean_ranges,
    multi_head_cost,
    multi_head_steps,
    random_tokens,
    residuals,
    rounding_bound,
    trained_input,
    trained_layer,
    uniform_range,
    walk_residual,
)
from viz_core.pretrained import Translator, build_translation_model
from viz_core.trace import record

SIZES = {"embed_size": 12, "num_hiddens": 12, "num_layers": 2, "dropout": 0.0}


def recurrent(translator: Translator, architecture: str) -> Translator:
    """An untrained recurrent model behind the tiny Transformer's tokenizer."""
    vocab_size = translator.tokenizer.get_vocab_size()
    with torch.random.fork_rng():
        torch.manual_seed(2)
        model = build_translation_model({"architecture": architecture, "vocab_size": vocab_size, **SIZES})
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.7)  # far from uniform weights
    return Translator(translator.card, model.eval().requires_grad_(False), translator.tokenizer, translator.device)


@pytest.fixture(scope="module")
def attends(translator: Translator) -> Translator:
    return recurrent(translator, "seq2seq-attention")


@pytest.fixture(scope="module")
def plain(translator: Translator) -> Translator:
    return recurrent(translator, "seq2seq")


@pytest.mark.parametrize("architecture", ["seq2seq-attention", "rnnsearch"])
def test_steps_are_those_of_the_recorded_pass(architecture: str, translator: Translator) -> None:
    attends = recurrent(translator, architecture)
    result = attends.translate("Where is the cat?", max_new_tokens=7)
    steps = decoder_steps(attends, result)
    recorded = result.trace["decoder.0.cross"].weights(head=0)[0]
    torch.testing.assert_close(steps.weights, recorded, atol=1e-6, rtol=0)
    assert float((recorded.max(dim=-1).values - 1 / recorded.shape[1]).min()) > 0.02  # not uniform: the test can fail
    assert weights_by_formula(attends, result, steps)[1] < 1e-5


def test_queries_contexts_and_choices_follow_from_the_states(attends: Translator) -> None:
    result = attends.translate("Where is the cat?", max_new_tokens=5)
    steps = decoder_steps(attends, result)
    source = torch.tensor([result.source_ids])
    outputs, hidden_state = attends.model.encoder(source)
    torch.testing.assert_close(steps.queries[0], hidden_state[-1, 0])  # the first to ask is the encoder's last state
    torch.testing.assert_close(steps.contexts, steps.weights @ outputs[0], atol=1e-6, rtol=0)
    torch.testing.assert_close(steps.probabilities.sum(dim=-1), torch.ones(len(result.target_ids)))
    chosen = steps.probabilities[range(len(result.target_ids)), list(result.target_ids)]
    assert float(chosen.log().sum()) == pytest.approx(result.log_probability, abs=1e-3)
    target = torch.tensor([[attends.special.bos, *result.target_ids[:-1]]])
    states, _ = attends.model.decoder.hidden(target, attends.model.decoder.init_state((outputs, hidden_state)))
    torch.testing.assert_close(steps.queries[1:], states[0, :-1], atol=1e-6, rtol=0)


def test_the_plain_decoder_has_a_bottleneck_and_the_other_has_not(plain: Translator, attends: Translator) -> None:
    result = plain.translate("Where is the cat?", max_new_tokens=5)
    assert result.trace.sites == ()
    assert erased_error(plain, result) == 0.0
    assert erased_error(attends, attends.translate("Where is the cat?", max_new_tokens=5)) > 1e-3
    with pytest.raises(ValueError, match="with additive attention, got Seq2SeqDecoder"):
        decoder_steps(plain, result)


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["the", "cat", ".", ","]), min_size=1, max_size=12), st.booleans())
def test_what_is_measured_is_what_is_counted(words: list[str], causal: bool) -> None:
    for name, (mass, chance) in uniform_masses(words, causal).items():
        assert mass == pytest.approx(chance, abs=1e-6), name


@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 9), st.integers(1, 3), st.booleans())
def test_steps_layer_and_torch_agree_for_any_size(heads: int, width: int, n: int, batch: int, bias: bool) -> None:
    layer, X = MultiHeadAttention(heads * width, heads, bias=bias), torch.randn(batch, n, heads * width)
    steps = multi_head_steps(layer, X)
    assert max(*residuals(layer, steps), walk_residual(layer, steps)) < 1e-6


def test_the_book_s_shapes_and_every_entry_by_loop() -> None:
    """The book: 100 hidden units, 5 heads, 2 sequences of 4 tokens."""
    layer, X = MultiHeadAttention(100, 5), torch.randn(2, 4, 100)
    steps = multi_head_steps(layer, X)
    assert {name: tuple(tensor.shape) for name, tensor in steps.tensors().items()} == {
        **dict.fromkeys(("input", "queries", "keys", "values", "concatenated", "output"), (2, 4, 100)),
        **dict.fromkeys(("split_queries", "split_keys", "split_values", "attended"), (2, 5, 4, 20)),
        **dict.fromkeys(("scores", "masked", "exponentials", "weights"), (2, 5, 4, 4)),
    }
    for b in range(2):
        for h in range(5):
            own = slice(20 * h, 20 * h + 20)
            q, k, v = (X[b] @ linear.weight[own].T for linear in (layer.W_q, layer.W_k, layer.W_v))
            torch.testing.assert_close(steps.split_queries[b, h], q, atol=1e-5, rtol=0)
            torch.testing.assert_close(steps.split_keys[b, h], k, atol=1e-5, rtol=0)
            torch.testing.assert_close(steps.split_values[b, h], v, atol=1e-5, rtol=0)
            weights = torch.softmax(q @ k.T / 20**0.5, dim=-1)
            torch.testing.assert_close(steps.weights[b, h], weights, atol=1e-6, rtol=0)
            torch.testing.assert_close(steps.attended[b, h], weights @ v, atol=1e-5, rtol=0)
            torch.testing.assert_close(steps.concatenated[b, :, own], weights @ v, atol=1e-5, rtol=0)
    torch.testing.assert_close(torch.softmax(steps.scores, -1), steps.weights, atol=1e-6, rtol=0)


def test_masked_softmax_step_by_step() -> None:
    layer, X = MultiHeadAttention(8, 2), torch.randn(2, 5, 8)
    steps = multi_head_steps(layer, X, causal=True)
    ahead = torch.ones(5, 5).triu(1).bool().expand(2, 2, 5, 5)
    assert bool((steps.masked[ahead] == -torch.inf).all())
    assert torch.equal(steps.masked[~ahead], steps.scores[~ahead])
    assert torch.equal(steps.exponentials.amax(-1), torch.ones(2, 2, 5))
    assert bool((steps.weights[ahead] == 0).all())
    torch.testing.assert_close(steps.weights, steps.call.weights(), atol=1e-6, rtol=0)
    assert walk_residual(layer, steps) < 1e-6
    assert rounding_bound(steps) < 1e-4
    assert torch.equal(multi_head_steps(layer, X).masked, multi_head_steps(layer, X).scores)


@pytest.mark.parametrize(("width", "heads", "sharpness"), [(8, 8, 8.0), (64, 8, 2.0), (512, 1, 8.0), (512, 64, 8.0)])
def test_rounding_stays_within_its_bound_and_the_bound_stays_small(width: int, heads: int, sharpness: float) -> None:
    layer, X = fresh_layer(width, heads, sharpness), random_tokens(64, width).X[None]
    steps = multi_head_steps(layer, X)
    bound = rounding_bound(steps)
    assert max(*residuals(layer, steps), walk_residual(layer, steps)) <= bound
    assert bound < 1e-3 * float(steps.output.abs().max())


@pytest.mark.parametrize("block", [0, 1])
def test_a_trained_layer_sees_and_does_what_it_does_in_the_model(translator: Translator, block: int) -> None:
    text = "The cat is on the bed."
    tokens = trained_input(translator, text, block, 64)
    ids = translator.encode(text)
    assert tokens.labels == translator.readable_tokens(ids)
    with record() as trace:
        translator.model.encoder(torch.tensor([ids]))
    layer = trained_layer(translator, block, 4)
    steps = multi_head_steps(layer, tokens.X[None])
    torch.testing.assert_close(steps.weights, trace[f"encoder.{block}.self"].weights(), atol=1e-6, rtol=0)
    assert (steps.call.site, steps.call.layer) == (f"encoder.{block}.self", block)  # as the model calls it


def test_by_hand() -> None:
    """d = 64, n = 10: 4 d^2 = 16,384, 4 n d^2 = 163,840, 2 n^2 d = 12,800, h n^2 = 800."""
    cost = multi_head_cost(10, 64, 8)
    assert (cost.parameters, cost.projections, cost.products, cost.weights) == (16_384, 163_840, 12_800, 800)
    assert cost.multiplications == 176_640


@pytest.mark.parametrize("heads", [1, 2, 4, 8])
def test_torch_counts_the_same(heads: int) -> None:
    with torch.device("meta"):
        layer, X = MultiHeadAttention(16, heads), torch.empty(1, 5, 16)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        layer(X, X, X)
    cost = multi_head_cost(5, 16, heads)
    assert counter.get_total_flops() == 2 * cost.multiplications  # it counts multiplications and additions
    assert sum(p.numel() for p in layer.parameters()) == cost.parameters


def test_ones_share_the_weight_among_the_words_of_each_sentence() -> None:
    toy = book_toy()
    assert toy.output.shape == (2, 4, 100)
    assert toy.weights.shape == (2, 5, 4, 6)
    assert toy.weights[0, 2, 1].tolist() == pytest.approx([1 / 3] * 3 + [0] * 3)
    assert toy.weights[1, 4, 3].tolist() == pytest.approx([0.5, 0.5, 0, 0, 0, 0])
    assert toy.parameters == 4 * 100 * 100


def test_ranges_by_hand() -> None:
    diagonal, even = torch.eye(5), torch.full((5, 5), 0.2)
    first = torch.zeros(5, 5).index_fill(1, torch.tensor([0]), 1.0)
    assert mean_ranges(torch.stack([diagonal, even, first])).tolist() == pytest.approx([0, uniform_range(range(5)), 2])
    assert uniform_range(range(5)) == pytest.approx(1.6)


def test_ranges_without_separators_leave_them_out_as_queries_and_as_keys() -> None:
    """Half of every row on the full stop: with it the head looks far, among words alone at itself."""
    weights = torch.eye(4) / 2
    weights[:, 3] += 0.5
    assert float(mean_ranges(weights[None])[0]) == pytest.approx((1.5 + 1 + 0.5) / 4)
    assert float(mean_ranges(weights[None], [0, 1, 2])[0]) == 0
    assert uniform_range([0, 1, 3]) == pytest.approx((1 + 3 + 2) * 2 / 9)
    tokens = ["The", "children", "'", "s", "<eos>", ".", "9"]
    assert [token for token in tokens if is_separator(token)] == ["'", "<eos>", "."]
