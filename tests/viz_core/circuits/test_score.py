"""Scores taken apart: the terms add up, and each is what explicit matrices make of what plain hooks see."""

import copy
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.viz_core.circuits.hooked import CLEAN, HEADS, WIDTH, layers, made, seen
from tests.viz_core.hub.families import in_memory, inputs_of
from viz_core.circuits import ScoreAttribution, score_attribution
from viz_core.hub import instrument
from viz_core.models import TransformerDecoder, TransformerEncoder
from viz_core.models.encoder_decoder import EncoderDecoder
from viz_core.models.transformer import BlockOptions
from viz_core.trace import Trace, intervene, off, record

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
        *((each, torch.float32) for each in ("gpt2", "llama", "mistral", "gemma2", "gpt-oss", "bert", "roberta")),
        *((each, torch.float32) for each in ("t5", "bart", "marian", "vit", "dinov2")),
        *((each, torch.bfloat16) for each in ("gpt2", "gpt-oss", "bert", "t5")),
    ],
)
def test_the_terms_add_up_to_the_score(family: str, dtype: torch.dtype) -> None:
    """In a padded batch, with a head off."""
    model = in_memory(family).to(dtype)
    instrument(model)
    inputs = {name: each.to(dtype) if each.is_floating_point() else each for name, each in inputs_of(model).items()}
    stacks = {"t5": ["encoder", "decoder"], "bart": ["encoder", "decoder"], "marian": ["encoder", "decoder"]}
    causal = family in ("gpt2", "llama", "mistral", "gemma2", "gpt-oss")
    for stack in stacks.get(family, ["decoder" if causal else "encoder"]):
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
            splits = family in ("gpt2", "bert", "roberta", "bart", "marian")
            assert (("position", None, None) in found.key_parts) is splits


@pytest.mark.parametrize(
    ("family", "dtype"),
    [
        *((family, torch.float32) for family in ("ours, norm last", "ours, norm first", "t5", "bart", "marian")),
        *((family, torch.bfloat16) for family in ("ours, norm last", "t5")),
    ],
)
def test_keys_of_cross_attention_are_read_from_the_encoder(family: str, dtype: torch.dtype) -> None:
    if family.startswith("ours"):
        torch.manual_seed(5)
        sizes, options = (20, 32, 24, HEADS, 2, 0.1, True), BlockOptions(norm_first=family.endswith("first"))
        model = EncoderDecoder(*(each(*sizes, options=options) for each in (TransformerEncoder, TransformerDecoder)))
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=0.4)
        model, lengths = model.eval().to(dtype), torch.tensor([6, 4])
        with record(values=True, states=True) as trace, torch.no_grad():
            memory = model.encoder(CLEAN, lengths)
            model.decoder(CLEAN.flip(1), model.decoder.init_state(memory, lengths))
    else:
        model = in_memory(family).to(dtype)
        instrument(model)
        trace = recorded(model, inputs_of(model))
    for row in (0, 1):
        found = score_attribution(model, trace, "decoder.1.cross", 1, **PLACES, row=row)
        adds_up(found, trace, "decoder.1.cross", row)
        assert {name[0] for name in found.key_parts} >= {"constant", "self", "mlp"}
        assert "cross" not in {name[0] for name in found.key_parts}
        assert ("self", 1, 2) in found.query_parts
        assert ("cross", 1, 2) not in found.query_parts


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


@torch.no_grad()
def test_tokens_and_positions_are_separate_terms() -> None:
    model, plain, clean, _, _ = made("gpt2")
    found = score_attribution(model, recorded(model, clean), "decoder.0.self", 1, **PLACES)
    assert (
        found.query_parts
        == found.key_parts
        == (("constant", None, None), ("token", None, None), ("position", None, None))
    )
    block = plain.transformer.h[0]
    states = seen(plain, clean, [(block.ln_1, "in")])[block.ln_1, "in"][0]
    vectors = []
    for place, part, columns in (
        (3, plain.transformer.wte.weight[clean["input_ids"][0, 3]], slice(8, 16)),
        (1, plain.transformer.wpe.weight[1], slice(40, 48)),
    ):
        carried = block.ln_1.weight * (part - part.mean()) / (states[place].var(unbiased=False) + 1e-5).sqrt()
        vectors.append(carried @ block.attn.c_attn.weight[:, columns])
    assert float(found.terms[1, 2]) == pytest.approx(float(vectors[0] @ vectors[1]) * WIDTH**-0.5, rel=1e-4, abs=1e-6)


def test_a_long_text_before_which_there_is_padding() -> None:
    """A rotation by the true place, also where padding comes first."""
    model = in_memory("llama")
    instrument(model)
    ids = torch.randint(4, 300, (2, 40), generator=torch.Generator().manual_seed(1))
    mask = (torch.arange(40) >= torch.tensor([[0], [11]])).long()
    trace = recorded(model, {"input_ids": ids, "attention_mask": mask})
    found = score_attribution(model, trace, "decoder.1.self", 2, 33, 20, row=1)
    assert found.total == pytest.approx(found.score, rel=1e-5)


ROOT = Path(__file__).resolve().parents[3]
PACKAGES = Path(sys.prefix) / "lens"
DOCUMENT = (ROOT / "docs" / "peers.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "tasks"),
    [("transformer_lens", "tests.viz_core.circuits.peer_tasks"), ("bertviz", "tests.viz_core.view.bertviz_tasks")],
)
def test_tasks_of_peers_give_the_same(package: str, tasks: str) -> None:
    if not (PACKAGES / package).is_dir() and not os.environ.get("CI"):
        pytest.skip(f"{package} is not in .venv/lens: `make test-slow` puts it there")
    environment = {**os.environ, "PYTHONPATH": str(PACKAGES)}
    command = [sys.executable, "-m", tasks]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    for task, each in found.items():
        assert each["difference"] < 1e-5, task
    section = next(part for part in DOCUMENT.split("\n## ") if f"{tasks.replace('.', '/')}.py" in part)
    rows = re.findall(r"^\| ([^|]+) \| (\d+) \| (\d+) \|", section, re.MULTILINE)
    assert rows == [(task, str(each["there"]), str(each["here"])) for task, each in found.items()]
