"""Parts add up to the logit, and each is what a hand-made pass gives it."""

from functools import partial
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

from tests.viz_core.hub.families import in_memory, inputs_of
from viz_core.circuits import Part, logit_attribution
from viz_core.hub import instrument
from viz_core.models import BlockOptions, TransformerDecoder
from viz_core.models.transformer_decoder import DecoderState
from viz_core.trace import intervene, off, record


def small(
    norm_first: bool, bias: bool, key_heads: int = 4, **more: Any
) -> tuple[TransformerDecoder, Tensor, DecoderState]:
    softcap = 2.0 if bias else None
    decoder = TransformerDecoder(
        30,
        16,
        24,
        4,
        2,
        0.0,
        bias,
        options=BlockOptions(norm_first=norm_first, num_key_heads=key_heads, softcap=softcap, **more),
    ).eval()
    with torch.no_grad():
        for parameter in decoder.parameters():  # no weight at 1 or 0, where a mistake would not show
            parameter.add_(0.3 * torch.randn_like(parameter))
    state = decoder.init_state(torch.randn(2, 5, 16), torch.tensor([5, 3]))
    return decoder, torch.randint(0, 30, (2, 6)), state


@pytest.mark.parametrize(("norm_first", "bias", "key_heads"), [(False, False, 4), (False, True, 2), (True, True, 1)])
@pytest.mark.parametrize("norm", [nn.LayerNorm, nn.RMSNorm, partial(nn.LayerNorm, bias=False)])
def test_parts_add_up_to_the_logit(norm_first: bool, bias: bool, key_heads: int, norm: Any) -> None:
    decoder, X, state = small(norm_first, bias, key_heads, norm=norm)
    tokens = torch.randint(0, 30, (2, 6))
    parts = logit_parts(decoder, X, state, tokens)
    logits = decoder(X, state)[0].gather(-1, tokens[..., None])[..., 0]
    torch.testing.assert_close(sum(part.value for part in parts), logits, atol=1e-4, rtol=1e-5)
    assert len(parts) == 2 + 2 * (4 + 4 + 1)
    assert len({part[:3] for part in parts}) == len(parts)


def test_a_part_is_what_its_head_carries_with_each_std_held() -> None:
    """By hand: without head 2 of the last cross-attention, every std at what it was with it."""
    decoder, X, state = small(norm_first=False, bias=False)
    tokens = torch.randint(0, 30, (2, 6))
    found = by_name(logit_parts(decoder, X, state, tokens), "cross", 1, 2)
    first, last = decoder.blks
    H, state = first(decoder.pos_encoding(decoder.embed(X)), state)
    Y = last.addnorm1(H, last.attention1(H, H, H, causal=True))
    memory = state.enc_outputs
    with intervene({"decoder.1.cross": off(0, 1, 3)}):
        alone = last.attention2(Y, memory, memory, state.enc_valid_lens)
    added = Y + last.attention2(Y, memory, memory, state.enc_valid_lens)
    Z = last.addnorm2.ln(added)
    after = Z + last.ffn(Z)
    carried = alone
    for norm, x in ((last.addnorm2.ln, added), (last.addnorm3.ln, after)):
        carried = (
            norm.weight
            * (carried - carried.mean(-1, keepdim=True))
            / (x.var(-1, unbiased=False) + 1e-5).sqrt()[..., None]
        )
    expected = (carried * decoder.dense.weight[tokens]).sum(dim=-1)
    torch.testing.assert_close(found.value, expected, atol=1e-5, rtol=1e-4)


def test_a_head_that_is_off_carries_nothing() -> None:
    decoder, X, state = small(norm_first=False, bias=True)
    tokens = torch.randint(0, 30, (2, 6))
    with intervene({"decoder.0.self": off(1)}):
        parts = logit_parts(decoder, X, state, tokens)
        logits = decoder(X, state)[0].gather(-1, tokens[..., None])[..., 0]
    assert not by_name(parts, "self", 0, 1).value.any()
    torch.testing.assert_close(sum(part.value for part in parts), logits, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize(
    ("family", "softcap"),
    [("gpt2", {}), ("llama", {}), ("gemma2", {"final_logit_softcapping": 3.0}), ("t5", {}), ("bart", {})],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_logit_of_instrumented_models_in_a_padded_batch(family: str, softcap: Any, dtype: torch.dtype) -> None:
    """With an edit in force, and in half precision."""
    model = in_memory(family, **softcap).to(dtype)
    instrument(model)
    inputs = inputs_of(model)
    with intervene({"decoder.0.self": off(1)}), record(values=True, states=True) as trace, torch.no_grad():
        logits = model(**inputs).logits.float()
    last = [-1, -1] if model.config.is_encoder_decoder else [8, 4]
    parts = logit_attribution(model, trace, torch.tensor([5, 7]), against=9)
    expected = torch.stack(
        [
            logits[i, place, token] - logits[i, place, 9]
            for i, (place, token) in enumerate(zip(last, (5, 7), strict=True))
        ]
    )
    rounding = 1e-5 if dtype == torch.float32 else 0.1
    torch.testing.assert_close(sum(part.value[:, 0] for part in parts), expected, atol=rounding, rtol=rounding)
    assert not by_name(parts, "self", 0, 1).value.any()
    assert by_name(parts, "self", 1, 2).value.any()


_OWN_CODE = {
    "gptj": {"rotary_dim": 4},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 4},
    "bloom": {},
    "mpt": {"max_seq_len": 32},
    "xglm": {"ffn_dim": 24},
    "openai-gpt": {},
}


@torch.no_grad()
@pytest.mark.parametrize("family", _OWN_CODE)
@pytest.mark.parametrize("before", [False, True], ids=["padded after", "padded before"])
def test_padding_is_known_of_layers_with_code_of_their_own(family: str, before: bool) -> None:
    """The last token of a text is not the last place of the batch."""
    sizes = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"max_position_embeddings": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    torch.manual_seed(5)
    config = transformers.AutoConfig.for_model(family, **sizes, **_OWN_CODE[family])
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    instrument(model)
    ids = torch.tensor([[5, 6, 7, 8, 9, 6], [5, 6, 7, 8, 0, 0]])
    ids = torch.stack([ids[0], ids[1].roll(2)]) if before else ids
    with record(values=True, states=True) as trace:
        logits = model(input_ids=ids, attention_mask=(ids > 0).long()).logits
    for call in trace:
        assert torch.equal(call.key_mask, ids > 0)
        assert torch.equal(call.query_mask, ids > 0)
    found = sum(part.value[:, 0] for part in logit_attribution(model, trace, 11, against=12))
    last = torch.stack([logits[0, 5], logits[1, 5 if before else 3]])
    torch.testing.assert_close(found, last[:, 11] - last[:, 12], atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_a_single_token_is_not_enough_to_find_a_multiplier() -> None:
    """Any change of one vector is a multiplication of its components: here one by a matrix."""
    model = in_memory("gpt2")
    instrument(model)
    turned = nn.Linear(32, 32, bias=False)
    for block in model.transformer.h:
        block.attn.c_proj.register_forward_hook(lambda _m, _i, output: turned(output))
    with record(values=True, states=True) as trace:
        logits = model(torch.tensor([[5]])).logits
    parts = logit_attribution(model, trace, 7)
    assert [part.head for part in parts if part.name == "self"] == [None, None]
    torch.testing.assert_close(sum(part.value for part in parts), logits[:, :, 7])


@torch.no_grad()
def test_a_multiplier_near_1_is_found_in_half_precision() -> None:
    """What heads write is not counted as biases, of which there are none."""
    sizes = {"vocab_size": 80, "hidden_size": 64, "intermediate_size": 48, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2, "residual_multiplier": 0.96, "pad_token_id": 0}
    torch.manual_seed(5)
    model = transformers.GraniteForCausalLM(transformers.GraniteConfig(**sizes)).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    model = model.to(torch.bfloat16)
    instrument(model)
    with record(values=True, states=True) as trace:
        model(torch.randint(3, 80, (1, 12)))
    parts = logit_attribution(model, trace, torch.arange(3, 15)[None], position=None)
    heads = sum(part.value for part in parts if part.name == "self")
    assert by_name(parts, "constant", None, None).value.abs().max() < 0.02 * heads.abs().max()


def logit_parts(
    decoder: TransformerDecoder, X: Tensor, state: DecoderState, tokens: Tensor, rivals: Tensor | None = None
) -> tuple[Part, ...]:
    with record(values=True, states=True) as trace, torch.no_grad():
        decoder(X, state)
    return logit_attribution(decoder, trace, tokens, position=None, against=rivals)


def by_name(parts: tuple[Part, ...], *name: object) -> Part:
    return next(part for part in parts if part[:3] == name)
