"""States of our models: recorded and edited, against plain hooks."""

import pickle

import pytest
import torch
import transformers
from torch import Tensor

from viz_core.hub import instrument
from viz_core.models import TransformerDecoder, TransformerEncoder, ViT
from viz_core.models.transformer import BlockOptions
from viz_core.trace import (
    intervene,
    off,
    patch_state,
    record,
    zero,
)

TOKENS = torch.tensor([[3, 4, 5, 6, 7], [8, 9, 3, 0, 0]])
LENGTHS = torch.tensor([5, 3])


@pytest.fixture(params=[False, True], ids=["norm last", "norm first"])
def encoder(request: pytest.FixtureRequest) -> TransformerEncoder:
    torch.manual_seed(3)
    options = BlockOptions(norm_first=request.param)
    return TransformerEncoder(11, 16, 24, 4, 2, 0.1, options=options).eval()


def hooked(model: TransformerEncoder) -> tuple[Tensor, dict[str, Tensor]]:
    """The output, and states by plain hooks."""
    seen: dict[str, Tensor] = {}
    handles = []
    for i, block in enumerate(model.blocks):
        parts = {
            "attention": block.attention,
            "mlp": block.ffn,
            "residual": block,
            "residual_attention": block.addnorm1,
        }
        for name, part in parts.items():
            handles.append(
                part.register_forward_hook(lambda _m, _i, out, at=f"encoder.{i}.{name}": seen.update({at: out}))
            )
        handles.append(
            block.ffn.dense2.register_forward_pre_hook(lambda _m, x, at=f"encoder.{i}.neurons": seen.update({at: x[0]}))
        )
    handles.append(model.blocks[0].register_forward_pre_hook(lambda _m, x: seen.update({"encoder.embedding": x[0]})))
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
def test_an_edit_of_heads_is_in_the_states(encoder: TransformerEncoder) -> None:
    edits = {"encoder.0.self": off(0, 1, 2, 3)}
    with intervene(edits), record(states=True) as trace:
        encoder(TOKENS, LENGTHS)
    assert not trace.states["encoder.0.attention"].any()
    assert trace.states["encoder.1.attention"].any()


@torch.no_grad()
@pytest.mark.parametrize("part", ["attention", "mlp", "neurons", "residual"])
def test_an_edit_is_that_of_a_plain_hook(encoder: TransformerEncoder, part: str) -> None:
    block = encoder.blocks[1]
    value = torch.randn(2, 5, 24 if part == "neurons" else 16)

    def replaced(_module: object, given: object, output: Tensor | None = None) -> object:
        state = (given[0] if output is None else output).clone()  # type: ignore[index]
        state[:, 2] = value[:, 2]
        return state if output is not None else (state,)

    at = {"attention": block.attention, "mlp": block.ffn, "residual": block}
    handle = (
        at[part].register_forward_hook(replaced) if part in at else block.ffn.dense2.register_forward_pre_hook(replaced)
    )
    expected = encoder(TOKENS, LENGTHS)
    handle.remove()
    with intervene({f"encoder.1.{part}": patch_state(value, queries=2)}), record(states=True) as trace:
        torch.testing.assert_close(encoder(TOKENS, LENGTHS), expected)
    assert torch.equal(trace.states[f"encoder.1.{part}"][:, 2], value[:, 2])


@torch.no_grad()
def test_the_embedding_can_be_edited(encoder: TransformerEncoder) -> None:
    with intervene({"encoder.embedding": zero()}), record(states=True) as trace:
        encoder(TOKENS, LENGTHS)
    assert not trace.states["encoder.embedding"].any()


@torch.no_grad()
def test_a_decoder_adds_two_attentions() -> None:
    torch.manual_seed(1)
    options = BlockOptions(norm_first=True)
    decoder = TransformerDecoder(11, 16, 24, 4, 2, 0.0, options=options).eval()
    state = decoder.init_state(torch.randn(2, 4, 16), torch.tensor([4, 2]))
    with record(states=True) as trace:
        decoder(TOKENS, state)
    states = trace.states
    for i, before in enumerate(("decoder.embedding", "decoder.0.residual")):
        added = [states[f"decoder.{i}.{name}"] for name in ("attention", "cross", "mlp")]
        torch.testing.assert_close(states[before] + sum(added), states[f"decoder.{i}.residual"])
        torch.testing.assert_close(states[before] + added[0], states[f"decoder.{i}.residual_attention"])


@torch.no_grad()
def test_a_vision_transformer_is_followed() -> None:
    model = ViT(8, 4, 16, 24, 4, 2, 0.0, 0.0).eval()
    with record(states=True) as trace:
        model(torch.randn(2, 3, 8, 8))
    states = trace.states
    parts = [states[f"encoder.{i}.{part}"] for i in (0, 1) for part in ("attention", "mlp")]
    torch.testing.assert_close(sum(parts, start=states["encoder.embedding"]), states["encoder.1.residual"])


def test_without_states_there_are_none_and_the_error_says_so() -> None:
    with record() as trace:
        TransformerEncoder(11, 16, 24, 4, 1, 0.0)(TOKENS)
    assert not trace.states
    with pytest.raises(KeyError, match="record\\(states=True\\)"):
        trace.states["encoder.0.residual"]


def test_recording_goes_with_pickles_and_devices(encoder: TransformerEncoder) -> None:
    with record(states=True) as trace:
        encoder(TOKENS, LENGTHS)
    assert set(trace.to("cpu").states) == set(trace.states)
    again = pickle.loads(pickle.dumps(trace)).states["encoder.0.mlp"]
    assert torch.equal(again, trace.states["encoder.0.mlp"])
    assert trace.nbytes > sum(state.nbytes for state in trace.states.values())


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ({"encoder.0.self": zero()}, "expected an edit of heads, got one of a state"),
        ({"encoder.9.mlp": zero()}, "no attention or state at encoder.9.mlp"),
        ({"encoder.0.mlp": [zero(), off(1)]}, "expected an edit of a state"),
        (
            {"encoder.0.mlp": patch_state(torch.ones(2, 4, 16))},
            r"encoder.0.mlp: expected \(2, 5, 16\), got \(2, 4, 16\)",
        ),
    ],
)
def test_edits_that_do_not_fit_are_refused(encoder: TransformerEncoder, edits: dict, message: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(ValueError, match=message), intervene(edits):
        encoder(TOKENS, LENGTHS)


@torch.no_grad()
def test_a_cross_attention_and_what_it_adds_have_one_name_and_edits_of_both() -> None:
    torch.manual_seed(1)
    decoder = TransformerDecoder(11, 16, 24, 4, 2, 0.0).eval()
    state = decoder.init_state(torch.randn(2, 4, 16))
    with intervene({"decoder.1.cross": [off(0, 1, 2, 3), zero(queries=0)]}), record(states=True) as trace:
        both = decoder(TOKENS, state)[0]
    assert not trace.states["decoder.1.cross"].any()
    with intervene({"decoder.1.cross": zero()}):
        torch.testing.assert_close(decoder(TOKENS, state)[0], both)
    alone = decoder.blks[1].attention2
    X = torch.randn(2, 3, 16)
    with (
        pytest.raises(ValueError, match="no attention or state at decoder.1.cross"),
        intervene({"decoder.1.cross": zero()}),
    ):
        alone(X, X, X)


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
