"""The lens of the lab: its last row is the model, the others what the model's own norm and head make of each state."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.viz_core.hub.families import build, hooks
from viz_core.hub import HubError, HubModel, load_hub
from viz_core.lab.circuits import MAX_PLACES, through_the_layers

TEXT = "The cat sat on the mat."
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
