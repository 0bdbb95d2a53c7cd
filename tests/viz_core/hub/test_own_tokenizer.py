"""Models whose folder describes no tokenizer: a pattern, a function, or token ids; and parts that are left out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from viz_core.hub import HubError, HubModel, load_hub

Tiny = Callable[[str], Path]
NAMES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "C", "O", "(", ")", "Cl", "=", ">>", "."]
SMILES = re.compile(r"Cl|[CO().=]|>>")


@pytest.fixture
def folder(copy: Tiny) -> Path:
    """A tiny BERT with a vocabulary and no description of a tokenizer."""
    path = copy("bert")
    for file in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (path / file).unlink(missing_ok=True)
    (path / "vocab.txt").write_text("\n".join(NAMES) + "\n")
    return path


def test_a_pattern_finds_the_tokens(folder: Path) -> None:
    model = load_hub(folder, device="cpu", tokenizer=SMILES)
    run = model.run("ClC(=O)O>>C")
    labels = ["[CLS]", "Cl", "C", "(", "=", "O", ")", "O", ">>", "C", "[SEP]"]
    assert [token.label for token in run.tokens] == labels
    assert [token.id for token in run.tokens] == [NAMES.index(label) for label in labels]
    assert [token.special for token in run.tokens] == [True, *[False] * 9, True]
    assert (model.card.tokenizer, model.card.vocabulary_size) == ("pattern", len(NAMES))
    assert run.num_unknown == 0
    with pytest.raises(HubError, match=r"matches no token at “NBr”"):
        model.run("CNBr")
    with pytest.raises(HubError, match="takes one text, not a pair"):
        model.run("C", text_pair="O")


def test_a_function_gives_tokens_or_ids(folder: Path) -> None:
    by_names = load_hub(folder, device="cpu", tokenizer=str.split).run("C O Br")
    assert [token.text for token in by_names.tokens] == ["[CLS]", "C", "O", "[UNK]", "[SEP]"]
    assert by_names.num_unknown == 1
    by_ids = load_hub(folder, device="cpu", tokenizer=lambda text: [4] * len(text)).run("abc")
    assert [token.id for token in by_ids.tokens] == [4, 4, 4], "nothing is added to ids"
    for function, message in {str.upper: "got str", lambda _: ["C", 4]: "got both"}.items():
        with pytest.raises(ValueError, match=message):
            load_hub(folder, device="cpu", tokenizer=function).run("C")
    (folder / "vocab.txt").write_text("C\nO\n")
    with pytest.raises(HubError, match="vocabulary of bert lacks 'N'"):
        load_hub(folder, device="cpu", tokenizer=list).run("CN")


def test_special_tokens_are_those_that_the_folder_names(folder: Path) -> None:
    (folder / "special_tokens_map.json").write_text('{"cls_token": {"content": "="}, "sep_token": "."}')
    run = load_hub(folder, device="cpu", tokenizer=list).run("CO.")
    assert [token.text for token in run.tokens] == ["=", "C", "O", "."], "an end that is there is not doubled"


def test_a_tokenizer_of_transformers_is_used_as_it_is(
    folder: Path, tiny: Tiny, tiny_model: Callable[..., HubModel]
) -> None:
    from transformers import AutoTokenizer

    model = load_hub(folder, device="cpu", tokenizer=AutoTokenizer.from_pretrained(tiny("bert")))
    assert model.run("The cat sat.").tokens == tiny_model("bert").run("The cat sat.").tokens


@pytest.mark.parametrize("family", ["bert", "gpt2", "marian"])
def test_token_ids_in_place_of_a_text(family: str, tiny_model: Callable[..., HubModel]) -> None:
    model = tiny_model(family)
    expected = model.run("The cat sat.", max_new_tokens=3)
    ids = [token.id for token in expected.tokens[: expected.num_prompt_tokens]]
    run = model.run(token_ids=torch.tensor(ids), max_new_tokens=3)
    assert (run.tokens, run.text) == (expected.tokens, expected.text)
    assert torch.equal(run.output, expected.output)
    assert run.made.text == " ".join(map(str, ids))
    with pytest.raises(HubError, match=r"numbers from 0 to [\d,]+; 1000000 is none"):
        model.run(token_ids=[1, 1000000])
    with pytest.raises(HubError, match=r"numbers from 0 to"):
        model.run(token_ids=[])
    with pytest.raises(ValueError, match="expected a sequence of integers"):
        model.run(token_ids=torch.tensor([ids]))
    with pytest.raises(ValueError, match="expected no text beside them"):
        model.run("a", token_ids=[1])


def test_a_folder_without_a_tokenizer_takes_ids(copy: Tiny) -> None:
    path = copy("gpt2")
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (path / file).unlink(missing_ok=True)
    model = load_hub(path, device="cpu")
    run = model.run("5, 6 7", max_new_tokens=0)
    assert [(token.id, token.label) for token in run.tokens] == [(5, "#5"), (6, "#6"), (7, "#7")]
    with pytest.raises(HubError, match="lacks its tokenizer. Type token ids"):
        model.run("The cat")


def test_what_takes_no_tokenizer_says_so(tiny: Tiny, tiny_model: Callable[..., HubModel]) -> None:
    with pytest.raises(HubError, match="takes no tokenizer but its own"):
        load_hub("vit-cifar10", device="cpu", tokenizer=list)
    with pytest.raises(ValueError, match="expected a function or a compiled pattern, got str"):
        load_hub(tiny("bert"), device="cpu", tokenizer="[A-Z]")
    with pytest.raises(HubError, match="takes a text, not token ids"):
        load_hub("transformer-en-fr", device="cpu").run(token_ids=[1])


@pytest.mark.attack("models")
def test_a_pattern_that_takes_too_long_is_not_used(folder: Path) -> None:
    with pytest.raises(HubError, match="takes too long on some texts"):
        load_hub(folder, device="cpu", tokenizer=re.compile(r"(a+)+b"))


def test_heads_of_another_architecture_are_named(copy: Tiny) -> None:
    path = copy("bert")
    tensors = load_file(path / "model.safetensors")
    extra = {f"species.{name}": torch.ones(2, 2) for name in ("dense.weight", "dense.bias")}
    save_file(tensors | extra | {"chain.weight": torch.ones(2)}, path / "model.safetensors", metadata={"format": "pt"})
    with pytest.warns(UserWarning, match=r"BertModel has no place for the weights of chain, species.dense"):
        model = load_hub(path, device="cpu")
    assert model.card.unused == ("chain", "species.dense")
