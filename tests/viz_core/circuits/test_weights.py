"""OV and QK circuits against explicit products of the matrices."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.viz_core.circuits.hooked import HEADS, WIDTH, Layer, layers, made
from tests.viz_core.hub.families import in_memory
from tests.viz_core.maps.test_contribution_shares import adapted
from viz_core.circuits import Circuit, direction_tokens, ov_circuit, qk_circuit
from viz_core.hub import instrument
from viz_core.models import EncoderDecoder, TransformerDecoder, TransformerEncoder
from viz_core.models.transformer import BlockOptions

FAMILIES = ["ours", "gpt2", "llama", "bert-fills"]


def matrix(layer: Layer, name: str, head: int) -> Tensor:
    """W_q, W_k or W_v of a head, (head width, d)."""
    weight = getattr(layer, name).weight.double()
    return (weight.T if layer.fused else weight)[layer.columns(name, head)]


def output_matrix(layer: Layer, head: int) -> Tensor:
    weight = layer.out.weight.double()
    return (weight.T if layer.fused else weight)[:, head * WIDTH : head * WIDTH + WIDTH]


def folded(plain: Any, family: str) -> Tensor:
    """The norm before the second layer as a matrix: gain times centring."""
    if family == "bert-fills":  # its norms come last
        return torch.eye(32, dtype=torch.float64)
    blocks = {"ours": lambda: plain.blocks[1].addnorm1.ln, "gpt2": lambda: plain.transformer.h[1].ln_1}
    norm = blocks.get(family, lambda: plain.model.layers[1].input_layernorm)()
    centred = torch.eye(32, dtype=torch.float64) - (0 if family == "llama" else 1 / 32)
    return norm.weight.double()[:, None] * centred


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@torch.no_grad()
def test_circuits_are_products_of_the_matrices(family: str, dtype: torch.dtype) -> None:
    """In half precision too: it is the weights that count, and they are exact."""
    model, plain, *_, stack = made(family, dtype)
    layer, head, norm = layers(plain)[1], 3, folded(plain, family)
    ov = ov_circuit(model, f"{stack}.1.self", head)
    expected = output_matrix(layer, head) @ matrix(layer, "values", head) @ norm
    check(ov, expected)
    qk = qk_circuit(model, f"{stack}.1.self", head)
    queries, keys = (matrix(layer, name, head) @ norm for name in ("queries", "keys"))
    check(qk, WIDTH**-0.5 * queries.T @ keys)


def check(circuit: Circuit, expected: Tensor) -> None:
    scale = float(expected.abs().max())
    assert circuit.left.shape == (32, WIDTH)
    torch.testing.assert_close((circuit.left @ circuit.right).double(), expected, atol=1e-5 * scale, rtol=1e-5)
    whole = circuit.U @ circuit.singular_values.diag() @ circuit.V.T
    torch.testing.assert_close(whole.double(), expected, atol=1e-5 * scale, rtol=1e-4)
    values = torch.linalg.svdvals(expected)[:WIDTH].float()
    torch.testing.assert_close(circuit.singular_values, values, atol=1e-5 * scale, rtol=1e-4)
    for directions in (circuit.U, circuit.V):
        torch.testing.assert_close(directions.T @ directions, torch.eye(WIDTH), atol=1e-5, rtol=0)


@pytest.mark.parametrize(("family", "norm"), [("gpt2", "transformer.ln_f"), ("llama", "model.norm")])
@torch.no_grad()
def test_directions_in_words(family: str, norm: str) -> None:
    model, plain, *_ = made(family)
    E = plain.get_input_embeddings().weight
    E = E / E.square().mean(dim=-1, keepdim=True).sqrt()
    ov, qk = (circuit(model, "decoder.1.self", 1) for circuit in (ov_circuit, qk_circuit))
    reads, writes = direction_tokens(model, ov, 2, 5)
    assert reads.tolist() == (E @ ov.V[:, 2]).topk(5).indices.tolist()
    u = ov.U[:, 2] - (ov.U[:, 2].mean() if family == "gpt2" else 0)
    logits = plain.lm_head.weight @ (plain.get_submodule(norm).weight * u)
    assert writes.tolist() == logits.topk(5).indices.tolist()
    queries, keys = direction_tokens(model, qk, 0, 4, sign=-1)
    assert queries.tolist() == (-E @ qk.U[:, 0]).topk(4).indices.tolist()
    assert keys.tolist() == (-E @ qk.V[:, 0]).topk(4).indices.tolist()


def cross(family: str) -> tuple[Any, Layer, nn.Module, bool]:
    """A model, the second cross-attention of its decoder, the norm before it, and whether that takes the mean away."""
    if family.startswith("ours"):
        torch.manual_seed(7)
        options = BlockOptions(norm_first=family.endswith("first"))
        model = TransformerDecoder(20, 32, 24, HEADS, 2, 0.1, True, options=options).eval()
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=0.4)
        block = model.blks[1]
        a, norm = block.attention2, block.addnorm2.ln if options.norm_first else block.addnorm1.ln
        return model, Layer(a, block.ffn, a.W_o, a.W_q, a.W_k, a.W_v), norm, True
    model = in_memory(family)
    instrument(model)
    if family == "t5":
        a, norm = model.decoder.block[1].layer[1].EncDecAttention, model.decoder.block[1].layer[1].layer_norm
        return model, Layer(a, a, a.o, a.q, a.k, a.v), norm, False
    a, norm = (getattr(model.model.decoder.layers[1], name) for name in ("encoder_attn", "self_attn_layer_norm"))
    return model, Layer(a, a, a.out_proj, a.q_proj, a.k_proj, a.v_proj), norm, True


@pytest.mark.parametrize("family", ["ours, norm last", "ours, norm first", "t5", "bart", "marian"])
@torch.no_grad()
def test_circuits_of_cross_attention(family: str) -> None:
    """Keys and values are read from the encoder's output, as it is; queries after the norm before."""
    model, layer, norm, centred = cross(family)
    check(ov_circuit(model, "decoder.1.cross", 2), output_matrix(layer, 2) @ matrix(layer, "values", 2))
    queries = matrix(layer, "queries", 2) * norm.weight.double()
    queries = queries - queries.mean(dim=1, keepdim=True) if centred else queries
    scale = 1 if family == "t5" else WIDTH**-0.5
    check(qk_circuit(model, "decoder.1.cross", 2), scale * queries.T @ matrix(layer, "keys", 2))


def two_vocabularies(family: str) -> tuple[Any, Tensor, Tensor, Tensor]:
    """A model with other tokens in its encoder than in its decoder, both tables of tokens, and its output layer."""
    torch.manual_seed(5)
    if family == "ours":
        sizes = (32, 24, HEADS, 2, 0.1)
        model: Any = EncoderDecoder(TransformerEncoder(30, *sizes), TransformerDecoder(50, *sizes)).eval()
        tables = model.encoder.embedding, model.decoder.embedding, model.decoder.dense
    else:
        model = in_memory(
            "marian",
            vocab_size=30,
            decoder_vocab_size=50,
            share_encoder_decoder_embeddings=False,
            tie_word_embeddings=False,
            pad_token_id=0,
            eos_token_id=1,
            bos_token_id=1,
            decoder_start_token_id=0,
        )
        instrument(model)
        tables = model.model.encoder.embed_tokens, model.model.decoder.embed_tokens, model.lm_head
    for table in tables:
        nn.init.normal_(table.weight)
    assert [len(table.weight) for table in tables] == [30, 50, 50]
    return model, *(table.weight.detach() for table in tables)  # type: ignore[return-value]


@pytest.mark.parametrize("family", ["ours", "marian"])
@torch.no_grad()
def test_tokens_of_two_vocabularies(family: str) -> None:
    """Cross-attention reads keys and values from the encoder's tokens, and queries from the decoder's."""
    model, source, target, output = two_vocabularies(family)
    source, target = (E / E.square().mean(dim=-1, keepdim=True).sqrt() for E in (source, target))
    for site, keys_from in (("decoder.1.cross", source), ("decoder.1.self", target)):
        ov, qk = (circuit(model, site, 1) for circuit in (ov_circuit, qk_circuit))
        read, written = direction_tokens(model, ov, 0, 5)
        assert read.tolist() == (keys_from @ ov.V[:, 0]).topk(5).indices.tolist()
        assert written.tolist() == (output @ ov.U[:, 0]).topk(5).indices.tolist()
        queries, keys = direction_tokens(model, qk, 0, 5)
        assert queries.tolist() == (target @ qk.U[:, 0]).topk(5).indices.tolist()
        assert keys.tolist() == (keys_from @ qk.V[:, 0]).topk(5).indices.tolist()
    qk = qk_circuit(model, "encoder.1.self", 1)
    assert direction_tokens(model, qk, 0, 5)[0].tolist() == (source @ qk.U[:, 0]).topk(5).indices.tolist()


@torch.no_grad()
def test_adapters_are_part_of_a_circuit() -> None:
    model = adapted(in_memory("llama"))
    instrument(model)
    attention, norm = model.model.layers[1].self_attn, model.model.layers[1].input_layernorm
    eye = torch.eye(32)
    W_v, W_o = attention.v_proj(eye).T[8:16], attention.o_proj(eye).T[:, 16:24]
    check(ov_circuit(model, "decoder.1.self", 2), (W_o @ (W_v * norm.weight)).double())
