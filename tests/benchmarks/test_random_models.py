"""What the benchmarks compare computes the same, or at least as much."""

from __future__ import annotations

import pytest
import torch

from benchmarks import picture_text, random_models
from benchmarks.map_queries import eager_queries, our_queries
from benchmarks.random_models import bert, forward, marian, our_translator, random_tokens, random_trace
from benchmarks.recording import check_alike
from benchmarks.translating import by_generate, with_cache, without_cache


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"vocab_size": 50, "num_hiddens": 16, "ffn_num_hiddens": 32, "num_heads": 2, "num_blks": 2}
    monkeypatch.setattr(random_models, "TRANSLATOR", sizes)


def test_all_ways_compute_the_same() -> None:
    models = {way: bert(way, layers=4, width=48, heads=6) for way in random_models.WAYS}
    tokens = random_tokens(20)
    trace, maps, output = (forward(way, models[way], tokens) for way in ("record", "eager", "fused"))
    check_alike(trace, maps)
    with torch.inference_mode():
        torch.testing.assert_close(models["record"](tokens).last_hidden_state, output, atol=1e-5, rtol=1e-4)
    ours, theirs = our_queries(trace), eager_queries(maps)
    assert list(ours) == list(theirs)
    for name in ours:
        for mine, other in zip(ours[name](), theirs[name](), strict=True):
            torch.testing.assert_close(mine, other, atol=1e-6, rtol=0)


def test_different_maps_stop_the_benchmark() -> None:
    trace = random_trace(6, layers=2, heads=3, width=4)
    maps = [call.weights() for call in trace]
    check_alike(trace, maps)
    maps[1][0, 2, 5, 0] += 1e-3
    with pytest.raises(RuntimeError, match=r"differ from eager ones by 1\.0e-03"):
        check_alike(trace, maps)


@pytest.mark.usefixtures("small")
def test_a_translation_with_and_without_a_cache_is_one_and_all_have_the_length_asked_for() -> None:
    source, model, peer = random_tokens(7, vocabulary=50), our_translator(), marian()
    assert with_cache(model, source).tolist() == without_cache(model, source).tolist()
    assert with_cache(model, source).shape == by_generate(peer, source).shape == (1, 7)


@pytest.mark.usefixtures("small")
def test_the_translators_are_of_one_size() -> None:
    """But for Marian's sinusoids, which it keeps among its parameters, and its final bias, which is a buffer."""

    def weights(model: torch.nn.Module) -> int:
        return sum(each.numel() for name, each in model.named_parameters() if "embed_positions" not in name)

    ours, peer = our_translator(), marian()
    assert abs(weights(ours) - weights(peer)) < 0.1 * weights(ours)


def test_a_recorded_pass_over_a_picture_computes_what_the_fused_one_does() -> None:
    shape, found = picture_text.TRY_OUT, {}
    inputs = picture_text.inputs_of(shape)
    for way in ("record", "fused"):
        model = picture_text.smolvlm(way, shape)
        found[way] = model(**inputs).logits
        trace = picture_text.read(way, model, inputs)
        assert (trace is None) == (way == "fused")
        if trace is not None:
            assert len(trace) == shape.layers + shape.eye_layers
            assert {call.source.shape[0] for call in trace} == {1}
    torch.testing.assert_close(found["record"], found["fused"], atol=1e-5, rtol=1e-4)
