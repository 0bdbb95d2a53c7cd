"""Logits and scores taken apart: parts add up, and each is what explicit matrices or a hand-made pass give."""

import copy
from functools import partial
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

from tests.viz_core.circuits.hooked import WIDTH, layers, made, seen
from tests.viz_core.hub.families import in_memory, inputs_of
from viz_core.circuits import Part, ScoreAttribution, logit_attribution, score_attribution
from viz_core.hub import instrument
from viz_core.models import BlockOptions, TransformerDecoder
from viz_core.models.transformer_decoder import DecoderState
from viz_core.trace import Trace, intervene, off, record


def small(
    norm_first: bool, bias: bool, key_heads: int = 4, **more: Any
) -> tuple[TransformerDecoder, Tensor, DecoderState]:
    options = BlockOptions(norm_first=norm_first, num_key_heads=key_heads, softcap=2.0 if bias else None, **more)
    decoder = TransformerDecoder(30, 16, 24, 4, 2, 0.0, bias, options=options).eval()
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
        std = (x.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
        carried = norm.weight * (carried - carried.mean(-1, keepdim=True)) / std
    expected = (carried * decoder.dense.weight[tokens]).sum(dim=-1)
    torch.testing.assert_close(found.value, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("family", "options"),
    [
        *((family, {}) for family in ("gpt2", "llama", "t5", "bart")),
        ("gemma2", {"final_logit_softcapping": 3.0}),
        ("granite", {"residual_multiplier": 0.96}),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_logit_of_instrumented_models_in_a_padded_batch(family: str, options: Any, dtype: torch.dtype) -> None:
    """With an edit in force, and in half precision."""
    model = in_memory(family, **options).to(dtype)
    instrument(model)
    inputs = inputs_of(model)
    with intervene({"decoder.0.self": off(1)}), record(values=True, states=True) as trace, torch.no_grad():
        logits = model(**inputs).logits.float()
    last = [-1, -1] if model.config.is_encoder_decoder else [8, 4]
    parts = logit_attribution(model, trace, torch.tensor([5, 7]), against=9)
    ends = logits[[0, 1], last]
    expected = ends[[0, 1], [5, 7]] - ends[:, 9]
    rounding = 1e-5 if dtype == torch.float32 else 0.1
    torch.testing.assert_close(sum(part.value[:, 0] for part in parts), expected, atol=rounding, rtol=rounding)
    assert not by_name(parts, "self", 0, 1).value.any()
    assert by_name(parts, "self", 1, 2).value.any()
    if family == "granite":  # what heads write is not counted as biases, of which there are none
        names = ("constant", None, None), ("self", 1, 2)
        constant, head = (by_name(parts, *name).value.abs().max() for name in names)
        assert constant < 0.02 * head


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
        model(torch.tensor([[5]]))
    assert [part.head for part in logit_attribution(model, trace, 7) if part.name == "self"] == [None, None]


def logit_parts(decoder: TransformerDecoder, X: Tensor, state: DecoderState, tokens: Tensor) -> tuple[Part, ...]:
    with record(values=True, states=True) as trace, torch.no_grad():
        decoder(X, state)
    return logit_attribution(decoder, trace, tokens, position=None)


def by_name(parts: tuple[Part, ...], *name: object) -> Part:
    return next(part for part in parts if part[:3] == name)


PLACES = {"query": 3, "key": 1}


def recorded(model: Any, inputs: Any) -> Trace:
    with record(values=True, states=True) as trace, torch.no_grad():
        model(**inputs)
    return trace


def adds_up(found: ScoreAttribution, trace: Trace, site: str, row: int = 0, head: int = 1) -> None:
    score = float(trace[site].source.scores(slice(head, head + 1), slice(3, 4))[row, 0, 0, 1])
    assert found.score == pytest.approx(score)
    assert abs(found.total - score) <= 1e-5 * max(abs(score), float(found.terms.abs().max()))
    assert len(set(found.query_parts)) == len(found.query_parts) == len(found.terms)
    assert len(set(found.key_parts)) == len(found.key_parts) == found.terms.shape[1]
    assert (found.terms.abs() > 1e-6).float().mean() > 0.3


@pytest.mark.parametrize(
    ("family", "dtype"),
    [
        *((each, torch.float32) for each in ("gpt2", "llama", "gemma2", "gpt-oss", "bert", "t5", "vit")),
        *((each, torch.float32) for each in ("marian", "dinov2")),
        *((each, torch.bfloat16) for each in ("gpt-oss", "bert")),
    ],
)
def test_the_terms_add_up_to_the_score(family: str, dtype: torch.dtype) -> None:
    """In a padded batch, with a head off."""
    model = in_memory(family).to(dtype)
    instrument(model)
    inputs = {name: each.to(dtype) if each.is_floating_point() else each for name, each in inputs_of(model).items()}
    stacks = {"t5": ["encoder", "decoder"], "marian": ["encoder", "decoder"], "bert": ["encoder"]}
    stacks |= {"vit": ["encoder"], "dinov2": ["encoder"]}
    for stack in stacks.get(family, ["decoder"]):
        site = f"{stack}.1.self"
        with intervene({f"{stack}.0.self": off(3)}):
            trace = recorded(model, inputs)
        has_sink = family == "gpt-oss"
        for row in (0, 1):
            found = score_attribution(model, trace, site, 1, 3, 1 + has_sink, row)
            if not has_sink:
                adds_up(found, trace, site, row)
            assert abs(found.total - found.score) <= 1e-5 * max(abs(found.score), float(found.terms.abs().max()))
            part = next(i for i, name in enumerate(found.query_parts) if name == ("self", 0, 3))
            assert not found.terms[part].any()
            splits = family in ("gpt2", "bert", "marian")
            assert (("position", None, None) in found.key_parts) is splits
    if family in ("t5", "marian"):  # keys of cross-attention are read from the encoder
        found = score_attribution(model, trace, "decoder.1.cross", 1, **PLACES)
        adds_up(found, trace, "decoder.1.cross")
        assert "cross" not in {name[0] for name in found.key_parts}


@torch.no_grad()
def test_a_term_of_cross_attention_is_what_explicit_matrices_make_of_it() -> None:
    """Of the last feed-forward nets before the query of T5's decoder, and of its encoder."""
    model = in_memory("t5")
    plain = copy.deepcopy(model)
    instrument(model)
    inputs = inputs_of(model)
    found = score_attribution(model, recorded(model, inputs), "decoder.1.cross", 1, **PLACES)
    (decoder, encoder), stacks = (plain.decoder.block[0].layer[2], plain.encoder.block[1].layer[1]), {}
    before, last = plain.decoder.block[1].layer[1], plain.encoder.final_layer_norm
    places = [(decoder.DenseReluDense, "out"), (encoder.DenseReluDense, "out"), (before.layer_norm, "in"), (last, "in")]
    states = seen(plain, inputs, places)
    for name, place, norm, part in (("q", 3, before.layer_norm, places[0]), ("k", 1, last, places[1])):
        size = (states[norm, "in"][0, place].square().mean() + norm.variance_epsilon).sqrt()
        stacks[name] = getattr(before.EncDecAttention, name).weight[8:16] @ (
            norm.weight * states[part][0, place] / size
        )
    term = found.terms[found.query_parts.index(("mlp", 0, None)), found.key_parts.index(("mlp", 1, None))]
    assert float(term) == pytest.approx(float(stacks["q"] @ stacks["k"]), rel=1e-4, abs=1e-6)


def rotated(x: Tensor, position: int) -> Tensor:
    """Llama's rotation of a query or key of 8 numbers, written out."""
    angles = position * 10000.0 ** (-torch.arange(4, dtype=torch.float64) / 4)
    a, b = x.double().chunk(2, dim=-1)
    return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], dim=-1)


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert-fills"])
@torch.no_grad()
def test_a_term_is_what_explicit_matrices_make_of_what_hooks_see(family: str) -> None:
    """Of head 2 of the first layer where the query is, and its feed-forward net where the key is."""
    model, plain, clean, _, stack = made(family)
    here, there = layers(plain)
    found = score_attribution(model, recorded(model, clean), f"{stack}.1.self", 3, **PLACES)
    if family == "bert-fills":
        block = plain.bert.encoder.layer[0]
        norms = [block.attention.output.LayerNorm, block.output.LayerNorm]
    else:
        norms = [plain.transformer.h[1].ln_1 if family == "gpt2" else plain.model.layers[1].input_layernorm]
    states = seen(plain, clean, [(here.out, "in"), (here.mlp, "out"), *((norm, "in") for norm in norms)])
    columns = slice(2 * WIDTH, 3 * WIDTH)
    W_o = here.out.weight if here.fused else here.out.weight.T
    head = states[here.out, "in"][0, 3, columns] @ W_o[columns]
    mlp = states[here.mlp, "out"][0, 1]

    def held(norm: nn.Module, part: Tensor, place: int) -> Tensor:
        x = states[norm, "in"][0, place].double()
        if family == "llama":
            return norm.weight * part / (x.square().mean() + norm.variance_epsilon).sqrt()
        return norm.weight * (part - part.mean()) / (x.var(unbiased=False) + norm.eps).sqrt()

    for norm in norms:
        head = held(norm, head, 3)
    for norm in norms[-1:]:
        mlp = held(norm, mlp, 1)
    vectors = []
    for name, part in (("queries", head), ("keys", mlp)):
        weight = getattr(there, name).weight.double()
        vectors.append((weight.T if there.fused else weight)[there.columns(name, 3)] @ part.double())
    if family == "llama":
        vectors = [rotated(vectors[0], 3), rotated(vectors[1], 1)]
    term = found.terms[found.query_parts.index(("self", 0, 2)), found.key_parts.index(("mlp", 0, None))]
    assert float(term) == pytest.approx(float(vectors[0] @ vectors[1]) * WIDTH**-0.5, rel=1e-4, abs=1e-6)


def test_a_long_text_before_which_there_is_padding() -> None:
    """A rotation by the true place, also where padding comes first."""
    model = in_memory("llama")
    instrument(model)
    ids = torch.randint(4, 300, (2, 40), generator=torch.Generator().manual_seed(1))
    mask = (torch.arange(40) >= torch.tensor([[0], [11]])).long()
    trace = recorded(model, {"input_ids": ids, "attention_mask": mask})
    found = score_attribution(model, trace, "decoder.1.self", 2, 33, 20, row=1)
    assert found.total == pytest.approx(found.score, rel=1e-5)
