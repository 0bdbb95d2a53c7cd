"""A text in a padded batch is measured, edited and patched as that text alone, whatever the padding."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from viz_core.attention import AdditiveAttention
from viz_core.maps.contributions import contribution_norms, contribution_sum, value_lengths
from viz_core.maps.fingerprints import measure_layer
from viz_core.maps.register import MEASURES
from viz_core.trace import (
    attend,
    gate,
    head_outputs,
    intervene,
    load_trace,
    mean,
    mean_outputs,
    off,
    patch,
    record,
    save_trace,
)

HEADS, WIDTH, LONG = 3, 4, 9
SITE = "encoder.0.self"


def text_of(n: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    drawn = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(1, HEADS, n, WIDTH, generator=drawn) for _ in range(3))  # type: ignore[return-value]


def places(n: int, side: str) -> slice:
    return slice(LONG - n, LONG) if side == "left" else slice(0, n)


def batch_of(n: int, side: str, *, additive: bool = False, causal: bool = False) -> tuple[Any, dict[str, Any]]:
    """A text of n tokens, padded with noise, beside one of LONG tokens."""
    padded = []
    for own, other, noise in zip(text_of(n), text_of(LONG, 1), text_of(LONG, 2), strict=True):
        row = noise.clone()
        row[:, :, places(n, side)] = own
        padded.append(torch.cat([row, other]))
    mask = torch.zeros(2, 1, LONG, LONG, dtype=torch.bool)
    mask[0, :, :, places(n, side)], mask[1] = True, True
    if causal:
        mask &= torch.ones(LONG, LONG, dtype=torch.bool).tril()
    return padded, {"bias": torch.where(mask, 0.0, -1e9)} if additive else {"mask": mask}


def recorded(inputs: Any, site: str = SITE, edits: dict[str, Any] | None = None, **options: Any) -> Any:
    with intervene(edits or {}), record(values=True) as trace:
        output = attend(*inputs, site=site, **options)
    return output, trace[site]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("additive", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("site", [SITE, "decoder.1.cross"])
def test_measures_of_a_padded_text_are_those_of_the_text_alone(
    side: str, additive: bool, causal: bool, site: str
) -> None:
    n, on_itself = 5, site == SITE
    inputs, options = batch_of(n, side, additive=additive, causal=causal)
    with record(token_mask={"decoder": options_tokens(n, side)} if not on_itself else None) as trace:
        attend(*inputs, site=site, **options)
    if not on_itself and side == "left" and causal:
        return
    alone = recorded(text_of(n), site, causal=causal)[1]
    separators = (1, n - 1)
    start = places(n, side).start
    padded = measure_layer(trace[site], 0, on_itself=on_itself, separators=tuple(start + each for each in separators))
    expected = measure_layer(alone, on_itself=on_itself, separators=separators)
    assert {name for name, each in MEASURES.items() if each.sums and not each.signed} - {"distance", "nearby"} - (
        {"information"} if on_itself else {"diagonal", "previous", "next"}
    ) == padded.fingerprints[0].keys()
    for found, wanted in zip(padded.fingerprints, expected.fingerprints, strict=True):
        assert found == pytest.approx(wanted, abs=1e-5)
    torch.testing.assert_close(padded.overview, expected.overview)
    assert measure_layer(trace[site], 1, on_itself=on_itself).fingerprints[0]["entropy"] > 0


def options_tokens(n: int, side: str) -> Tensor:
    tokens = torch.zeros(2, LONG, dtype=torch.bool)
    tokens[0, places(n, side)], tokens[1] = True, True
    return tokens


@pytest.mark.parametrize("what", ["weights", "output"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_patch_from_a_padded_batch_is_that_from_each_text_alone(side: str, what: str) -> None:
    n = 5
    inputs, options = batch_of(n, side)
    source = recorded(inputs, **options)[1]
    other = "right" if side == "left" else "left"
    target, masks = batch_of(n, other)
    shifted = [tensor.roll(1, dims=1) for tensor in target]
    output, _ = recorded(shifted, edits={SITE: patch(1, source, what)}, **masks)
    alone = recorded(text_of(n))[1]
    own = [tensor[:1, :, places(n, other)] for tensor in shifted]
    expected, _ = recorded(own, edits={SITE: patch(1, alone, what)})
    torch.testing.assert_close(output[:1, :, places(n, other)], expected, atol=1e-5, rtol=0)


def test_masks_say_where_the_padding_is() -> None:
    inputs, options = batch_of(5, "left", causal=True)
    _, call = recorded(inputs, **options)
    assert call.key_mask.tolist() == call.query_mask.tolist() == options_tokens(5, "left").tolist()
    plain = recorded(text_of(5))[1]
    assert bool(plain.key_mask.all())
    assert plain.text(0) is plain


def test_queries_of_cross_attention_are_the_tokens_of_the_self_attention_before() -> None:
    targets = torch.arange(5) < torch.tensor([3, 5])[:, None]
    queries, keys = torch.randn(2, HEADS, 5, WIDTH), torch.randn(2, HEADS, 7, WIDTH)
    with record() as trace:
        attend(queries, queries, queries, mask=targets[:, None, None], site="decoder.0.self")
        attend(queries, keys, keys, site="decoder.0.cross")
    assert torch.equal(trace["decoder.0.cross"].query_mask, targets)


def test_a_token_mask_of_another_size_or_with_a_gap_is_refused() -> None:
    with pytest.raises(ValueError, match="token_mask: expected \\(1, 5\\)"), record(token_mask=torch.ones(1, 4).bool()):
        attend(*text_of(5), site=SITE)
    with pytest.raises(ValueError, match="between"), record(token_mask=torch.tensor([[True, False, True]])):
        pass


def test_padding_is_kept_in_files_and_left_out_of_means(tmp_path: Path) -> None:
    inputs, options = batch_of(5, "left")
    _, call = recorded(inputs, **options)
    outputs = torch.cat([head_outputs(call.text(row))[0] for row in (0, 1)], dim=1)
    torch.testing.assert_close(mean_outputs(call), outputs.mean(dim=1))
    counted = options["mask"][:, 0, 0] & (torch.arange(LONG) != LONG - 1)
    some = torch.cat([head_outputs(call)[row][:, counted[row]] for row in (0, 1)], dim=1)
    torch.testing.assert_close(mean_outputs(call, counted), some.mean(dim=1))
    layer = AdditiveAttention(4, 4, 4, 0.0)
    with record(values=True) as trace:
        layer(torch.randn(2, 3, 4), torch.randn(2, 6, 4), torch.randn(2, 6, 4), torch.tensor([2, 6]))
    save_trace(trace, tmp_path / "trace.safetensors")
    loaded = load_trace(tmp_path / "trace.safetensors")[0]
    assert loaded.key_mask.sum(dim=1).tolist() == [2, 6]
    assert loaded.text(0).num_keys == 2


def test_contributions_see_what_edits_of_the_output_write() -> None:
    W_o = torch.nn.Linear(HEADS * WIDTH, 6, bias=False)
    factor = torch.tensor([[0.5, -2.0], [3.0, 0.0]])
    inputs, options = batch_of(5, "right")
    output, call = recorded(inputs, edits={SITE: [gate([0, 2], factor), off(1)]}, **options)
    expected = W_o(output.transpose(1, 2).flatten(2)).detach()
    torch.testing.assert_close(contribution_sum(call, W_o), expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(head_outputs(call), output, atol=1e-5, rtol=0)
    _, plain = recorded(inputs, **options)
    torch.testing.assert_close(
        value_lengths(call, W_o)[:, [0, 2]], value_lengths(plain, W_o)[:, [0, 2]] * factor.abs()[..., None]
    )
    for edit in (mean(1, torch.zeros(HEADS, WIDTH)), patch(1, plain, "output")):
        _, replaced = recorded(inputs, edits={SITE: edit}, **options)
        with pytest.raises(ValueError, match="the output of head 1 was replaced"):
            contribution_norms(replaced, W_o)


def test_a_text_of_a_causal_call_keeps_its_window() -> None:
    """With a cache: three queries after four keys, each of which attends to two keys."""
    queries, keys = torch.randn(2, HEADS, 3, WIDTH), torch.randn(2, HEADS, 7, WIDTH)
    visible = torch.arange(7) >= torch.arange(4, 7)[:, None] - 1
    mask = torch.cat([visible[None, None], visible[None, None]])
    with record() as trace:
        attend(queries, keys, keys, mask=mask, causal=True, site=SITE)
    call = trace[SITE]
    own = call.text(1)
    assert own.num_keys == 4
    assert own.source.causal is False
    torch.testing.assert_close(own.weights(), call.weights()[1:, :, :, 3:])
    assert not own.weights()[0, :, -1, :2].any()
