"""States of our models: recorded and edited against plain hooks, chosen, cut, saved, and changed in place."""

import copy
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from viz_core.hub import instrument
from viz_core.models import TransformerDecoder, TransformerEncoder
from viz_core.models.transformer import BlockOptions
from viz_core.trace import Trace, attend, intervene, load_trace, off, patch_state, record, save_trace, zero

TOKENS = torch.tensor([[3, 4, 5, 6, 7], [8, 9, 3, 0, 0]])
LENGTHS = torch.tensor([5, 3])


@pytest.fixture(params=[False, True], ids=["norm last", "norm first"])
def encoder(request: pytest.FixtureRequest) -> TransformerEncoder:
    torch.manual_seed(3)
    options = BlockOptions(norm_first=request.param)
    return TransformerEncoder(11, 16, 24, 4, 2, 0.1, options=options).eval()


def hooked(model: TransformerEncoder) -> tuple[Tensor, dict[str, Tensor]]:
    seen: dict[str, Tensor] = {}
    handles = [model.blocks[0].register_forward_pre_hook(lambda _m, x: seen.update({"encoder.embedding": x[0]}))]
    for i, block in enumerate(model.blocks):
        parts = {
            "attention": block.attention,
            "mlp": block.ffn,
            "residual": block,
            "residual_attention": block.addnorm1,
        }
        for name, part in parts.items():
            hook = lambda _m, _i, out, at=f"encoder.{i}.{name}": seen.update({at: out})  # noqa: E731
            handles.append(part.register_forward_hook(hook))
        before = lambda _m, x, at=f"encoder.{i}.neurons": seen.update({at: x[0]})  # noqa: E731
        handles.append(block.ffn.dense2.register_forward_pre_hook(before))
    output = model(TOKENS, LENGTHS)
    for handle in handles:
        handle.remove()
    return output, seen


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_recorded_as_by_plain_hooks(encoder: TransformerEncoder, dtype: torch.dtype) -> None:
    model = encoder.to(dtype)
    output, seen = hooked(model)
    with record(states=True) as trace:
        assert torch.equal(model(TOKENS, LENGTHS), output)
    assert set(trace.states) == {*seen, "encoder.output"}
    for name, state in seen.items():
        assert torch.equal(trace.states[name], state), name


@torch.no_grad()
@pytest.mark.parametrize("part", ["attention", "mlp", "neurons", "residual", "embedding"])
def test_an_edit_is_that_of_a_plain_hook(encoder: TransformerEncoder, part: str) -> None:
    block, site = encoder.blocks[1], "encoder.embedding" if part == "embedding" else f"encoder.1.{part}"
    value = torch.randn(2, 5, 24 if part == "neurons" else 16)

    def replaced(state: Tensor) -> Tensor:
        return torch.cat([state[:, :2], value[:, 2:3], state[:, 3:]], dim=1)

    after = {"attention": block.attention, "mlp": block.ffn, "residual": block}
    before = {"neurons": block.ffn.dense2, "embedding": encoder.blocks[0]}
    if part in after:
        handle = after[part].register_forward_hook(lambda _m, _i, output: replaced(output))
    else:
        handle = before[part].register_forward_pre_hook(lambda _m, given: (replaced(given[0]), *given[1:]))
    expected = encoder(TOKENS, LENGTHS)
    handle.remove()
    with intervene({site: patch_state(value, queries=2)}), record(states=True) as trace:
        torch.testing.assert_close(encoder(TOKENS, LENGTHS), expected)
    assert torch.equal(trace.states[site][:, 2], value[:, 2])


@torch.no_grad()
def test_a_cross_attention_and_what_it_adds_have_one_name_and_edits_of_both() -> None:
    decoder = TransformerDecoder(11, 16, 24, 4, 2, 0.0).eval()
    state = decoder.init_state(torch.randn(2, 4, 16))
    with intervene({"decoder.1.cross": [off(0, 1, 2, 3), zero(queries=0)]}), record(states=True) as trace:
        both = decoder(TOKENS, state)[0]
    assert not trace.states["decoder.1.cross"].any()
    with intervene({"decoder.1.cross": zero()}):
        torch.testing.assert_close(decoder(TOKENS, state)[0], both)


@torch.no_grad()
def test_a_window_of_a_picture_has_no_states_of_a_picture() -> None:
    """Row 1 of the windows is not picture 1, and row 5 is not a picture at all."""
    torch.manual_seed(3)
    sizes = {"image_size": 16, "patch_size": 2, "embed_dim": 8, "depths": [2], "num_heads": [2], "window_size": 2}
    model = transformers.SwinModel(transformers.SwinConfig(**sizes)).eval()
    instrument(model)
    with record(states=True) as trace:
        model(torch.randn(2, 3, 16, 16))
    assert {len(call.weights()) for call in trace} == {32}
    assert {len(state) for state in trace.states.values()} == {2}
    for row in (1, 5):
        alone = trace.text(row)
        assert not alone.states
        assert torch.equal(alone["encoder.0.1.self"].weights()[0], trace["encoder.0.1.self"].weights()[row])


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
    path = tmp_path / "trace.safetensors"
    save_trace(trace, path)
    for again in (load_trace(path), trace.to("cpu"), pickle.loads(pickle.dumps(trace))):
        assert list(again.states) == list(trace.states)
        assert all(torch.equal(again.states[name], state) for name, state in trace.states.items())
    assert trace.nbytes > sum(state.nbytes for state in trace.states.values())
    with safe_open(path, framework="pt") as file:
        tensors, header = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    save_file(tensors, path, {**header, "states": '{"a": "b"}'})
    with pytest.raises(ValueError, match="a state is missing"):
        load_trace(path)


@torch.no_grad()
@pytest.mark.parametrize("states", [("residual",), ("mlp", "embedding")])
def test_chosen_states_alone_are_recorded(encoder: TransformerEncoder, states: tuple[str, ...]) -> None:
    with record(states=True) as whole:
        encoder(TOKENS, LENGTHS)
    with record(states=states, attention=False) as trace:
        encoder(TOKENS, LENGTHS)
    assert list(trace.states) == [name for name in whole.states if name.rpartition(".")[2] in states]
    assert all(torch.equal(state, whole.states[name]) for name, state in trace.states.items())
    assert trace.sites == ()


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


@torch.no_grad()
def test_a_layer_that_writes_into_its_input_leaves_what_was_recorded_before() -> None:
    model, seen = TransformerEncoder(11, 16, 24, 4, 2, 0.0).eval(), list[Tensor]()

    def doubled(_module: object, given: tuple[Tensor, ...]) -> None:
        seen.append(given[0].clone())
        given[0].mul_(2)  # the stream itself

    model.blocks[1].attention.register_forward_pre_hook(doubled)
    model.blocks[1].ffn.dense2.register_forward_hook(lambda _m, _i, output: output.mul_(0.5))
    with record(states=True) as trace:
        model(TOKENS)
    assert torch.equal(trace.states["encoder.0.residual"], seen[0])
    assert [name for name in trace.states if name.startswith("encoder.1.")] == ["encoder.1.residual"]
    edited = intervene({"encoder.1.neurons": zero()})
    with pytest.raises(ValueError, match="no attention or state at encoder.1.neurons"), edited:
        model(TOKENS)


@torch.no_grad()
def test_a_part_that_is_added_in_place_is_recorded_and_edited() -> None:
    torch.manual_seed(3)
    model, plain = (TransformerEncoder(11, 16, 24, 4, 2, 0.0, options=BlockOptions(norm_first=True)) for _ in "ab")
    plain.load_state_dict(model.state_dict())

    def added(block: Any) -> Callable[..., Tensor]:
        def forward(X: Tensor, *_: object, **_more: object) -> Tensor:
            Y = block.addnorm1.ln(X)
            X.add_(block.attention(Y, Y, Y))
            X += block.ffn(block.addnorm1.ln(X))
            return X

        return forward

    for block in (*model.eval().blocks, *plain.eval().blocks):
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


def copiers(trace: Trace, path: Path) -> list[Callable[[], object]]:
    saved = partial(save_trace, trace, path / "trace.safetensors")
    return [
        saved,
        lambda: trace.text(1),
        lambda: trace.to("cpu"),
        lambda: pickle.dumps(trace),
        lambda: copy.deepcopy(trace),
    ]


@torch.no_grad()
def test_a_state_that_was_changed_is_refused(encoder: TransformerEncoder, tmp_path: Path) -> None:
    outputs = list[Tensor]()
    encoder.blocks[0].ffn.register_forward_hook(lambda _m, _i, output: outputs.append(output))
    with record(states=True) as trace:
        encoder(TOKENS, LENGTHS)
    outputs[0].add_(1)
    of_states = [lambda: trace.states["encoder.0.mlp"], lambda: Trace.merge({"a": trace}), trace.stitched]
    for read in (*of_states, *copiers(trace, tmp_path)):
        with pytest.raises(ValueError, match="was changed in place after it was recorded"):
            read()
    assert torch.is_tensor(trace.states["encoder.1.mlp"])


@pytest.mark.parametrize("changed", ["queries", "keys", "mask", "bias"])
def test_a_call_that_was_changed_is_refused(changed: str, tmp_path: Path) -> None:
    held = {name: torch.randn(2, 1, 3, 2) for name in ("queries", "keys", "values")}
    held |= {"mask": torch.tensor([True, True, False]).repeat(2, 1, 3, 1), "bias": torch.zeros(1, 1, 3, 3)}
    with record() as trace:
        attend(**held)
    held[changed].zero_()
    for read in (lambda: trace["attention.0"].weights(), *copiers(trace, tmp_path)):
        with pytest.raises(ValueError, match="was changed in place after it was recorded"):
            read()
