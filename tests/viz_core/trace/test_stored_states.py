"""States that are chosen, cut, saved, and changed in place."""

import copy
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from tests.viz_core.trace.test_states import LENGTHS, TOKENS, encoder
from viz_core.attention import MultiHeadAttention
from viz_core.models import TransformerDecoder, TransformerEncoder
from viz_core.models.transformer import BlockOptions
from viz_core.trace import (
    Trace,
    attend,
    intervene,
    load_trace,
    name_sites,
    record,
    save_trace,
    zero,
)
from viz_core.trace.states import _FollowedLayer

__all__ = ["encoder"]


@torch.no_grad()
def test_recordings_that_are_cut_joined_and_saved_keep_their_states(
    encoder: TransformerEncoder, tmp_path: Path
) -> None:
    with record(states=True) as trace:
        encoder(TOKENS, LENGTHS)
    for name, state in trace.text(1).states.items():
        assert torch.equal(state, trace.states[name][1:, :3]), name
    assert torch.equal(trace.text(0).states["encoder.1.mlp"], trace.states["encoder.1.mlp"][:1])
    merged = Trace.merge({"a": trace}).states
    assert torch.equal(merged["a/encoder.0.neurons"], trace.states["encoder.0.neurons"])
    save_trace(trace, tmp_path / "trace.safetensors")
    again = load_trace(tmp_path / "trace.safetensors").states
    assert list(again) == list(trace.states)
    assert all(torch.equal(again[name], state) for name, state in trace.states.items())


@pytest.mark.parametrize("states", [("residual",), ("mlp", "embedding")])
def test_chosen_states_alone_are_recorded_and_no_layer_is_followed_for_those_around_it(
    encoder: TransformerEncoder, states: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with torch.no_grad(), record(states=True) as whole:
        encoder(TOKENS, LENGTHS)
    followed: list[str] = []
    monkeypatch.setattr(_FollowedLayer, "__enter__", lambda self: followed.append(self.name))
    monkeypatch.setattr(_FollowedLayer, "__exit__", lambda *_: None)
    with torch.no_grad(), record(states=("residual",), attention=False) as trace:
        encoder(TOKENS, LENGTHS)
    with torch.no_grad(), intervene({"encoder.0.residual": zero()}):
        encoder(TOKENS, LENGTHS)
    assert not followed
    assert not trace.sites
    with torch.no_grad(), suppress(ValueError), intervene({"encoder.1.residual": zero(), "encoder.0.mlp": zero()}):
        encoder(TOKENS, LENGTHS)
    assert followed == ["encoder.0"]
    monkeypatch.undo()
    with torch.no_grad(), record(states=states) as trace:
        encoder(TOKENS, LENGTHS)
    assert list(trace.states) == [name for name in whole.states if name.rpartition(".")[2] in states]
    assert all(torch.equal(state, whole.states[name]) for name, state in trace.states.items())
    assert trace.sites == whole.sites


def test_a_chosen_state_that_the_next_layer_changes_in_place_is_what_it_was() -> None:
    model = nn.ModuleDict({"layers": nn.ModuleList(_InPlace() for _ in range(2))}).eval()
    name_sites(model, "encoder")
    with torch.inference_mode(), record(states=("embedding", "residual")) as trace:
        X = torch.ones(1, 3, 4)
        for layer in model["layers"]:
            X = layer(X)
    assert [float(state.mean()) for state in trace.states.values()] == [1.0, 2.0, 3.0]


class _InPlace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(4, 2, 0.0)

    def forward(self, X: Tensor) -> Tensor:
        self.attention(X, X, X, None)
        return X.add_(1)


def test_kinds_of_states_that_do_not_exist_and_recordings_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="states: expected some of attention, .*, got stream"), record(states="stream"):
        pass
    with pytest.raises(ValueError, match="attention: expected True"), record(attention=False):
        pass


@torch.no_grad()
def test_states_of_steps_are_those_of_one_pass() -> None:
    torch.manual_seed(1)
    decoder = TransformerDecoder(11, 16, 24, 4, 2, 0.0).eval()
    state = decoder.init_state(torch.randn(2, 4, 16))
    with record(states=True) as whole:
        decoder(TOKENS, state)
    with record(states=True) as trace:
        for token in TOKENS.split(1, dim=1):
            state = decoder(token, state)[1]
    found = trace.stitched().states
    assert set(found) == set(whole.states)
    for name, expected in whole.states.items():
        torch.testing.assert_close(found[name], expected)


def test_a_list_of_states_that_cannot_be_read_is_refused(encoder: TransformerEncoder, tmp_path: Path) -> None:
    path = tmp_path / "trace.safetensors"
    with record(states=True) as trace:
        encoder(TOKENS)
    save_trace(trace, path)
    with safe_open(path, framework="pt") as file:
        tensors, header = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    for states, message in (("[1]", "its list of states cannot be read"), ('{"a": "b"}', "a state is missing")):
        save_file(tensors, path, {**header, "states": states})
        with pytest.raises(ValueError, match=message):
            load_trace(path)


# What is changed in place


@torch.no_grad()
def test_a_layer_that_writes_into_its_input_leaves_what_was_recorded_before() -> None:
    torch.manual_seed(3)
    model, seen = TransformerEncoder(11, 16, 24, 4, 2, 0.0).eval(), list[Tensor]()

    def doubled(_module: object, given: tuple[Tensor, ...]) -> None:
        seen.append(given[0].clone())
        given[0].mul_(2)  # the stream itself

    model.blocks[1].attention.register_forward_pre_hook(doubled)
    with record(states=True) as trace:
        model(TOKENS)
    assert torch.equal(trace.states["encoder.0.residual"], seen[0])
    assert [name for name in trace.states if name.startswith("encoder.1.")] == ["encoder.1.residual"]


@torch.no_grad()
@pytest.mark.parametrize("how", ["add_", "+="])
def test_a_part_that_is_added_in_place_is_recorded_and_edited(how: str) -> None:
    torch.manual_seed(3)
    model, plain = (TransformerEncoder(11, 16, 24, 4, 2, 0.0, options=BlockOptions(norm_first=True)) for _ in "ab")
    plain.load_state_dict(model.state_dict())

    def added(block: Any) -> Callable[..., Tensor]:
        def forward(X: Tensor, *_: object, **_more: object) -> Tensor:
            for branch in (lambda Y: block.attention(Y, Y, Y), block.ffn):
                Y = branch(block.addnorm1.ln(X))
                if how == "add_":
                    X.add_(Y)
                else:
                    X += Y
            return X

        return forward

    model.eval(), plain.eval()
    for block in (*model.blocks, *plain.blocks):
        block.forward = added(block)
    with record(states=True) as trace:
        output = model(TOKENS)
    states = trace.states
    total = states["encoder.0.residual"] + states["encoder.1.attention"] + states["encoder.1.mlp"]
    torch.testing.assert_close(total, states["encoder.1.residual"])
    plain.blocks[1].attention.register_forward_hook(lambda _m, _i, output: torch.zeros_like(output))
    with intervene({"encoder.1.attention": zero()}):
        edited = model(TOKENS)
    torch.testing.assert_close(edited, plain(TOKENS))
    assert not torch.equal(edited, output)


@torch.no_grad()
def test_neurons_whose_output_is_changed_in_place_are_not_edited(encoder: TransformerEncoder) -> None:
    """An edit would lose the change."""
    encoder.blocks[1].ffn.dense2.register_forward_hook(lambda _m, _i, output: output.mul_(0.5))
    with record(states=True) as trace:
        encoder(TOKENS)
    assert "encoder.1.neurons" not in trace.states
    edits = {"encoder.1.neurons": zero()}
    with pytest.raises(ValueError, match=r"no attention or state at encoder.1.neurons"), intervene(edits):
        encoder(TOKENS)


@torch.no_grad()
@pytest.mark.parametrize(
    "read",
    [
        lambda trace, _: trace.states["encoder.0.mlp"],
        lambda trace, _: list(trace.states.values()),
        lambda trace, path: save_trace(trace, path / "trace.safetensors"),
        lambda trace, _: Trace.merge({"a": trace}),
        lambda trace, _: trace.stitched(),
        lambda trace, _: trace.text(1),
        lambda trace, _: trace.to("cpu"),
        lambda trace, _: pickle.dumps(trace),
        lambda trace, _: copy.deepcopy(trace),
    ],
)
def test_a_state_that_was_changed_is_refused(
    encoder: TransformerEncoder, read: Callable[[Trace, Path], object], tmp_path: Path
) -> None:
    outputs = list[Tensor]()
    encoder.blocks[0].ffn.register_forward_hook(lambda _m, _i, output: outputs.append(output))
    with record(states=True) as trace:
        encoder(TOKENS, LENGTHS)
    outputs[0].add_(1)
    with pytest.raises(ValueError, match="was changed in place after it was recorded"):
        read(trace, tmp_path)
    assert torch.is_tensor(trace.states["encoder.1.mlp"])
    assert "MB" in repr(trace)


def test_a_call_that_was_changed_is_not_cut_or_copied() -> None:
    x = torch.randn(2, 1, 3, 2)
    with record() as trace:
        attend(x, x, x, mask=torch.tensor([True, True, False]).expand(2, 1, 3, 3))
    x.zero_()
    for read in (lambda: trace.text(1), lambda: pickle.dumps(trace), lambda: copy.deepcopy(trace)):
        with pytest.raises(ValueError, match="was changed in place after it was recorded"):
            read()
