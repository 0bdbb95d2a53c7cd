"""Edits of layers with a learned sink: it is no token, so positions are those of the tokens."""

import pytest
import torch

from tests.viz_core.hub.in_memory import in_memory
from viz_core.hub import instrument
from viz_core.trace import Trace, intervene, knock_out, patch, pattern, record, uniform, window

IDS = torch.tensor([[5, 6, 7, 8, 9, 10]])


@pytest.fixture(params=[0, 2], ids=["whole", "padded before"])
def model_and_inputs(request: pytest.FixtureRequest) -> tuple[torch.nn.Module, dict[str, torch.Tensor], int]:
    model = in_memory("gpt-oss")
    instrument(model)
    mask = torch.ones_like(IDS)
    mask[:, : request.param] = 0
    return model, {"input_ids": IDS, "attention_mask": mask}, request.param


@torch.no_grad()
def maps(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> Trace:
    with record() as trace:
        model(**inputs)
    return trace


def test_a_pair_is_cut_by_the_positions_of_its_tokens(model_and_inputs) -> None:  # type: ignore[no-untyped-def]
    model, inputs, padding = model_and_inputs
    before = maps(model, inputs)["decoder.0.self"].weights()
    with intervene({"decoder.0.self": knock_out(None, query=3, key=0)}):
        after = maps(model, inputs)["decoder.0.self"].weights()
    expected = before.clone()
    expected[:, :, 3 + padding, 1 + padding] = 0
    expected /= expected.sum(dim=-1, keepdim=True)
    assert float(before[:, :, 3 + padding, 1 + padding].max()) > 0.1
    torch.testing.assert_close(after[:, :, padding:], expected[:, :, padding:])


def test_a_window_and_a_pattern_are_those_of_the_tokens(model_and_inputs) -> None:  # type: ignore[no-untyped-def]
    model, inputs, padding = model_and_inputs
    with intervene({"decoder.0.self": window(None, 2), "decoder.1.self": pattern(None, "first")}):
        trace = maps(model, inputs)
    weights = trace["decoder.0.self"].weights()[0, :, -1]
    assert (weights[:, [0, 5, 6]] > 0).all()  # the sink stays in sight
    assert not weights[:, 1:5].any()
    assert (trace["decoder.1.self"].weights()[0, :, padding:, 1 + padding] == 1).all()


def test_weights_that_are_given_do_not_name_the_sink(model_and_inputs) -> None:  # type: ignore[no-untyped-def]
    model, inputs, _ = model_and_inputs
    call = maps(model, inputs)["decoder.0.self"]
    for edit in (patch(0, call), pattern(0, torch.eye(6))):
        with pytest.raises(ValueError, match="without a learned sink"), intervene({"decoder.0.self": edit}):
            model(**inputs)
    with intervene({"decoder.0.self": uniform()}):
        assert maps(model, inputs)["decoder.0.self"].weights()[0, 0, -1].unique().numel() <= 2
