"""A recorded pass again with heads off, and the lens of the lab, each against the model's own modules."""

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.viz_core.hub.families import build, hooks, zero_head
from viz_core.hub import HubError, HubModel, load_hub
from viz_core.lab.circuits import MAX_PLACES, through_the_layers
from viz_core.lab.heads_off import perplexity, switchable, without_heads

TEXT = "The cat sat on the mat."
OFF = (("decoder.0.self", 1), ("decoder.1.self", 3))


def cut(model: HubModel, *heads: tuple[str, int]) -> Any:
    """A copy of the model with the columns of these heads at zero."""
    whole = copy.deepcopy(model.engine.model)
    for site, head in heads:
        zero_head(whole, site, head)
    return whole


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_next_words_and_perplexity_of_the_same_text(family: str, tiny_model: Callable[[str], HubModel]) -> None:
    model = tiny_model(family)
    run = model.run(TEXT, max_new_tokens=4)
    found = without_heads(model, run, OFF, position=2, count=5)
    ids = torch.tensor([[token.id for token in run.tokens]])
    with torch.inference_mode():
        both = [each(input_ids=ids).logits[0] for each in (model.engine.model, cut(model, *OFF))]
    perplexities = []
    for logits in both:
        log_p = logits.log_softmax(dim=-1)
        nll = [-float(log_p[i, ids[0, i + 1]]) for i in range(len(log_p) - 1)]
        perplexities.append(math.exp(np.mean(nll)))
    assert found.perplexity == pytest.approx(perplexities, rel=1e-4)
    assert found.perplexity is not None
    assert abs(found.perplexity[0] - found.perplexity[1]) > 1e-3 * found.perplexity[0]
    assert found.counted == len(run.tokens) - 1
    before, after = (logits[2].softmax(dim=-1) for logits in both)
    best = int(torch.maximum(before, after).argmax())
    assert found.changes[0].label == model.engine.tokenizer.read([best])[0].label
    assert (found.changes[0].before, found.changes[0].after) == pytest.approx(
        (float(before[best]), float(after[best])), abs=1e-5
    )
    assert len(found.changes) == 5
    same = without_heads(model, run, (), position=2)
    assert all(change.before == change.after for change in same.changes)


def test_a_translation_is_judged_by_what_was_written(tiny_model: Callable[[str], HubModel]) -> None:
    model = tiny_model("t5")
    run = model.run(TEXT, target="the dog")
    found = without_heads(model, run, (("decoder.1.cross", 0),))
    assert found.counted == len(run.target_tokens)
    with torch.inference_mode():
        log_p = model.rerun(run).log_softmax(dim=-1)
    nll = -np.mean([float(log_p[i, token.id]) for i, token in enumerate(run.target_tokens)])
    assert found.perplexity is not None
    assert found.perplexity[0] == pytest.approx(math.exp(nll), rel=1e-4)
    assert found.perplexity[1] != pytest.approx(found.perplexity[0], rel=1e-4)


def test_a_perplexity_beyond_every_number_is_infinite() -> None:
    assert perplexity(torch.tensor([[0.0, 1e4]]), [0]) == math.inf


def test_an_encoders_output_turns_by_an_angle(tiny_model: Callable[[str], HubModel]) -> None:
    model = tiny_model("bert")
    run = model.run(TEXT, text_pair="A dog.")
    off = (("encoder.0.self", 2),)
    found = without_heads(model, run, off)
    with torch.inference_mode():
        after = cut(model, *off)(**run.inputs).last_hidden_state[0]
    before = run.output
    cos = (before * after).sum(-1) / (before.norm(dim=-1) * after.norm(dim=-1))
    assert found.distances is not None
    np.testing.assert_allclose(found.distances, 1 - cos, atol=1e-5)
    assert float(found.distances.max()) > 1e-3
    assert (found.changes, found.perplexity) == ((), None)


def test_a_model_that_sorts_says_what_of_each_class(tiny_model: Callable[[str], HubModel]) -> None:
    model = tiny_model("sorter")
    run = model.run(TEXT)
    found = without_heads(model, run, (("encoder.0.self", 0), ("encoder.1.self", 0)))
    assert {change.label for change in found.changes} == {label.text for label in run.labels}
    assert sum(change.before for change in found.changes) == pytest.approx(1)
    assert sum(change.after for change in found.changes) == pytest.approx(1)


def test_layers_that_share_weights_are_switched_off_each_for_itself(tiny_model: Callable[[str], HubModel]) -> None:
    model = tiny_model("albert")
    run = model.run(TEXT)
    assert len(run.trace) == 3
    assert switchable(model, run) == tuple((f"encoder.{i}.self", 4) for i in range(3))
    engine = replace(model.engine, holds_maps=True)
    assert switchable(replace(model, engine=engine), run) == ()


Head = Callable[[Any, Tensor], Tensor]


def of_roberta(model: Any, H: Tensor) -> Tensor:
    head = model.lm_head
    return head.decoder(head.layer_norm(nn.functional.gelu(head.dense(H))))


def of_bert(model: Any, H: Tensor) -> Tensor:
    head = model.cls.predictions
    return head.decoder(head.transform.LayerNorm(nn.functional.gelu(head.transform.dense(H))))


def of_gemma2(model: Any, H: Tensor) -> Tensor:
    cap = model.config.final_logit_softcapping
    return cap * torch.tanh(model.lm_head(model.model.norm(H)) / cap)


# What is done to the states of each family, by hand.
HEADS: dict[str, Head] = {
    "gpt2": lambda model, H: model.lm_head(model.transformer.ln_f(H)),
    "llama": lambda model, H: model.lm_head(model.model.norm(H)),
    "gemma2": of_gemma2,
    "bloom": lambda model, H: model.lm_head(model.transformer.ln_f(H)),
    "bert-fills": of_bert,
    "roberta-fills": of_roberta,
}


@pytest.mark.parametrize("family", HEADS)
def test_each_row_is_the_state_through_norm_and_head(family: str, tmp_path: Path) -> None:
    build(family, tmp_path)
    model = load_hub(tmp_path, device="cpu")
    assert model.card.head == ("mask" if family.endswith("fills") else "words")
    run = model.run(TEXT, **({} if family.endswith("fills") else {"max_new_tokens": 0}))
    listeners = hooks(model.network)
    found = through_the_layers(model, run)
    assert hooks(model.network) == listeners, "what listens sits on copies"
    assert found.residual < 1e-5
    assert len(found.tokens) == len(found.probabilities) == 3
    assert found.read == tuple(token.label for token in run.tokens)[-MAX_PLACES:]
    whole = model.engine.model
    ids = torch.tensor([[token.id for token in run.tokens]])
    with torch.inference_mode():
        result = whole(input_ids=ids, output_hidden_states=True)
        rows = [HEADS[family](whole, H)[0].softmax(dim=-1) for H in result.hidden_states[:-1]]
        rows.append(result.logits[0].softmax(dim=-1))
    final_word = rows[-1].argmax(dim=-1)
    for number, row in enumerate(rows):
        torch.testing.assert_close(torch.from_numpy(found.probabilities[number]), row.amax(dim=-1))
        best = model.engine.tokenizer.read(row.argmax(dim=-1).tolist())
        assert found.tokens[number] == tuple(token.label for token in best)
        followed = row.gather(-1, final_word[:, None])[:, 0]
        torch.testing.assert_close(torch.from_numpy(found.final_word[number]), followed)
    assert float((rows[0] - rows[-1]).abs().max()) > 1e-3, "rows that are all alike would prove nothing"


@pytest.mark.parametrize("family", ["bert", "t5"])
def test_a_model_without_one_output_layer_says_so(family: str, tiny_model: Callable[[str], HubModel]) -> None:
    model = tiny_model(family)
    with pytest.raises(HubError, match="no output layer over words behind one stack"):
        through_the_layers(model, model.run(TEXT))
