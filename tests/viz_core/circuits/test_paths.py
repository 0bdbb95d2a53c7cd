"""OV and QK circuits against products of matrices; paths between two heads against plain hooks."""

import copy
from functools import partial
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.viz_core.circuits.hooked import HEADS, WIDTH, Layer, first, hooks, layers, made, metric, seen, with_columns
from tests.viz_core.hub.families import in_memory, inputs_of
from viz_core.circuits import (
    Circuit,
    circuit_edges,
    circuits_alone,
    direction_tokens,
    ov_circuit,
    path_patch,
    qk_circuit,
    sweep,
)
from viz_core.hub import instrument
from viz_core.models import EncoderDecoder, TransformerDecoder, TransformerEncoder
from viz_core.models.transformer import BlockOptions
from viz_core.trace import intervene, off

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


@torch.no_grad()
def test_tokens_of_two_vocabularies() -> None:
    """Cross-attention reads keys and values from the encoder's tokens, and queries from the decoder's."""
    torch.manual_seed(5)
    sizes = (32, 24, HEADS, 2, 0.1)
    model = EncoderDecoder(TransformerEncoder(30, *sizes), TransformerDecoder(50, *sizes)).eval()
    tables = [nn.init.normal_(stack.embedding.weight) for stack in (model.encoder, model.decoder)]
    source, target = (E / E.square().mean(dim=-1, keepdim=True).sqrt() for E in tables)
    for site, keys_from in (("decoder.1.cross", source), ("decoder.1.self", target)):
        ov, qk = (circuit(model, site, 1) for circuit in (ov_circuit, qk_circuit))
        read, _ = direction_tokens(model, ov, 0, 5)
        assert read.tolist() == (keys_from @ ov.V[:, 0]).topk(5).indices.tolist()
        queries, keys = direction_tokens(model, qk, 0, 5)
        assert queries.tolist() == (target @ qk.U[:, 0]).topk(5).indices.tolist()
        assert keys.tolist() == (keys_from @ qk.V[:, 0]).topk(5).indices.tolist()


@torch.no_grad()
def by_hooks(
    plain: Any, clean: Any, corrupted: Any, sender: int, receiver: int | None, to: str, through_mlp: bool = False
) -> Tensor:
    """From a head of the first layer to one of the second, or to the logits."""
    here, there = layers(plain)
    columns = slice(sender * WIDTH, sender * WIDTH + WIDTH)
    written = seen(plain, clean, [(here.out, "in")])[here.out, "in"]
    places = [(here.mlp, "out"), (there.attention, "out"), (there.mlp, "out"), (there.out, "in")]
    before = seen(plain, corrupted, places)
    frozen = {place: lambda _x, place=place: before[place] for place in places[1 if through_mlp else 0 : 2]}
    if not through_mlp:
        frozen[places[2]] = lambda _x: before[places[2]]
    projection = getattr(there, to)
    found: dict[str, Tensor] = {}
    with hooks(
        {
            (here.out, "in"): lambda x: with_columns(x, columns, written),
            (projection, "out"): lambda x: found.update(x=x),
        }
        | frozen
    ):
        logits = first(plain(**corrupted))
    if receiver is None:
        return metric(logits).float()
    own = there.columns(to, receiver)
    of_head = slice(receiver * WIDTH, receiver * WIDTH + WIDTH)
    with hooks(
        {
            (projection, "out"): lambda x: with_columns(x, own, found["x"]),
            (there.out, "in"): lambda x: with_columns(before[there.out, "in"], of_head, x),
        }
    ):
        return metric(first(plain(**corrupted))).float()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("receiver", "to"), [(2, "queries"), (3, "keys"), (2, "values"), (None, "queries")])
@pytest.mark.parametrize("through_mlp", [False, True])
def test_a_path_is_that_of_plain_hooks(family: str, receiver: int | None, to: str, through_mlp: bool) -> None:
    """In a padded batch."""
    model, plain, clean, corrupted, stack = made(family)
    end = None if receiver is None else (f"{stack}.1.self", receiver)
    found = path_patch(model, clean, corrupted, metric, (f"{stack}.0.self", 1), end, to, through_mlp=through_mlp)
    expected = by_hooks(plain, clean, corrupted, 1, receiver, to, through_mlp)
    torch.testing.assert_close(found, expected, atol=5e-6, rtol=1e-6)
    with torch.no_grad():
        before = metric(first(plain(**corrupted)))
    assert abs(found - before) > 3e-5, "a path without effect would prove nothing"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_path_with_a_head_off_and_in_half_precision(family: str) -> None:
    model, plain, clean, corrupted, stack = made(family)
    out = layers(plain)[0].out
    weight = out.weight.data if family == "gpt2" else out.weight.data.T
    weight[2 * WIDTH : 3 * WIDTH] = 0
    with intervene({f"{stack}.0.self": off(2)}):
        found = path_patch(model, clean, corrupted, metric, (f"{stack}.0.self", 1), (f"{stack}.1.self", 0), "keys")
    torch.testing.assert_close(found, by_hooks(plain, clean, corrupted, 1, 0, "keys"), atol=2e-5, rtol=1e-4)
    model, plain, clean, corrupted, stack = made(family, torch.bfloat16)
    found = path_patch(model, clean, corrupted, metric, (f"{stack}.0.self", 1), (f"{stack}.1.self", 0), "values")
    torch.testing.assert_close(found, by_hooks(plain, clean, corrupted, 1, 0, "values"), atol=0.05, rtol=0.05)


@torch.no_grad()
def test_a_path_from_the_encoder_to_the_values_of_a_decoder() -> None:
    """Against plain hooks: of the encoder, the feed-forward net of the last layer alone is between the two."""
    model = in_memory("t5")
    plain = copy.deepcopy(model)
    instrument(model)
    inputs = inputs_of(model)
    other = inputs | {"input_ids": inputs["input_ids"].roll(1, dims=1).where(inputs["attention_mask"] > 0, 0)}

    def read(logits: Tensor) -> Tensor:
        return logits[:, -1, 7].sum()

    ends = ("encoder.1.self", 2), ("decoder.1.cross", 1)
    found = path_patch(model, inputs, other, read, *ends, "values")
    layer, v = plain.encoder.block[1].layer, plain.decoder.block[1].layer[1].EncDecAttention.v
    written = (layer[0].SelfAttention.o, "in")
    mlp = (layer[1].DenseReluDense, "out")
    of_sender, of_receiver = (slice(head * WIDTH, head * WIDTH + WIDTH) for head in (2, 1))
    clean, before = (seen(plain, each, [written, mlp])[place] for each, place in ((inputs, written), (other, mlp)))
    changes = {written: lambda x: with_columns(x, of_sender, clean), mlp: lambda _x: before}
    with hooks(changes):
        values = seen(plain, other, [(v, "out")])[v, "out"]
    with hooks({(v, "out"): lambda x: with_columns(x, of_receiver, values)}):
        expected = read(plain(**other).logits)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)
    assert abs(found - read(plain(**other).logits)) > 1e-5, "a path without effect would prove nothing"
    with pytest.raises(ValueError, match="receiver: expected a call after 'decoder.1.cross'"):
        path_patch(model, inputs, other, read, *ends[::-1], "values")


EVERY = [(f"decoder.{layer}.self", head) for layer, head in product(range(2), range(HEADS))]
SOME = [("decoder.0.self", 1), ("decoder.0.self", 3), ("decoder.1.self", 0)]


@torch.no_grad()
def alone_by_hooks(plain: Any, clean: dict[str, Tensor], corrupted: dict[str, Tensor], circuit: list[Any]) -> Tensor:
    places = [(layer.out, "in") for layer in layers(plain)]
    written = seen(plain, corrupted, places)

    def outside(i: int, x: Tensor) -> Tensor:
        for head in range(HEADS):
            if (f"decoder.{i}.self", head) not in circuit:
                x = with_columns(x, slice(head * WIDTH, head * WIDTH + WIDTH), written[places[i]])
        return x

    with hooks({place: partial(outside, i) for i, place in enumerate(places)}):
        return metric(first(plain(**clean)))


def test_a_circuit_alone_is_that_of_plain_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viz_core.circuits.path.CELLS", 2)
    model, plain, clean, corrupted, _ = made("gpt2")
    circuits: list[Any] = [SOME, [], EVERY, EVERY[5:]]
    found = circuits_alone(model, clean, corrupted, metric, circuits)
    expected = torch.stack([alone_by_hooks(plain, clean, corrupted, circuit) for circuit in circuits])
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    with torch.no_grad():
        torch.testing.assert_close(found[2], metric(plain(**clean).logits), atol=1e-5, rtol=1e-4)
    assert found.std() > 0.01
    assert sweep.CELLS == 16


def test_edges_are_all_paths_between_the_heads_and_to_the_logits() -> None:
    model, _, clean, corrupted, _ = made("gpt2")
    edges = circuit_edges(model, clean, corrupted, metric, SOME)
    ends = [(edge.sender, edge.receiver, edge.to) for edge in edges]
    pairs = [(SOME[0], SOME[2]), (SOME[1], SOME[2])]
    expected = [(*pair, to) for pair in pairs for to in ("queries", "keys", "values")]
    assert sorted(ends, key=str) == sorted([*expected, *((head, None, "logits") for head in SOME)], key=str)
    for edge in edges[2], edges[-1]:
        to = "queries" if edge.receiver is None else edge.to
        alone = path_patch(model, clean, corrupted, metric, edge.sender, edge.receiver, to, through_mlp=True)
        assert edge.value == pytest.approx(float(alone), abs=1e-6)
