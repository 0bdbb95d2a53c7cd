"""What ships: files that say what the model is and how well it does, and the batches that it is scored in."""

import copy
import hashlib
import json
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load as load_tensors
from torch import Tensor

from recipes.batches import (
    Example,
    bleu_by_length,
    collate,
    encode_pairs,
    plan_batches,
    translate_all,
)
from recipes.loop import RunOptions
from recipes.sentence_pairs import Pair, Split, train_tokenizer
from recipes.translation import TranslationConfig, TranslationState
from recipes.translators import LENGTH_EDGES, TranslatorSpec, export_translator
from viz_core.models import EncoderDecoder
from viz_core.pretrained import Translator, build_translation_model, load
from viz_core.pretrained.bleu import corpus_bleu
from viz_core.pretrained.decoding import beam_search, greedy_search
from viz_core.pretrained.familiarity import word_counts
from viz_core.pretrained.tokenization import SpecialTokens

NAME, CPU = "export-test", torch.device("cpu")
SPEC = TranslatorSpec(
    "A test",
    "a model",
    {
        "architecture": "transformer",
        "num_hiddens": 16,
        "ffn_num_hiddens": 24,
        "num_heads": 2,
        "num_blks": 1,
        "dropout": 0.2,
    },
    TranslationConfig(epochs=7),
)
CURVE = [
    {"epoch": 1.0, "train_loss": 3.0, "validation_loss": 2.5, "validation_bleu": 10.0},
    {"epoch": 1.75, "train_loss": 2.0, "validation_loss": 2.625, "validation_bleu": 20.0},
]


class Exported(NamedTuple):
    out: Path
    before: dict[str, torch.Tensor]  # the parameters as they were trained
    model: EncoderDecoder  # as the export left it
    split: Split
    translated: list[list[str]]  # what was given to the model, a list a call

    def read(self, file: str) -> Any:
        return json.loads((self.out / file).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def exported(pairs: list[Pair], tmp_path_factory: pytest.TempPathFactory) -> Exported:
    out = tmp_path_factory.mktemp("checkpoints") / NAME
    out.mkdir()
    test = [*pairs[:10], Pair("Go.", "Allez !")]
    split = Split(pairs[10:], pairs[8:10], test)
    tokenizer = train_tokenizer([text for pair in pairs for text in pair], vocab_size=200)
    tokenizer.save(str(out / "tokenizer.json"))
    torch.manual_seed(5)
    model = build_translation_model({"vocab_size": tokenizer.get_vocab_size(), **SPEC.architecture})
    with torch.no_grad():
        model.decoder.dense.bias[2] += 1.5  # some sentences end early, so that lengths and scores differ
    before = copy.deepcopy(dict(model.named_parameters()))
    state = TranslationState(epoch=2, updates=1234, elapsed=3723.4, curve=CURVE)
    translated: list[list[str]] = []

    def watched(*given: Any, **options: Any) -> list[str]:
        translated.append(list(given[2]))
        return translate_all(*given, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recipes.translators.translate_all", watched)
        export_translator(NAME, SPEC, model, tokenizer, split, state, SPEC.config, RunOptions(out, CPU))
    return Exported(out, before, model, split, translated)


def test_the_folder_has_all_files_each_parameter_once_in_float16_and_translates(exported: Exported) -> None:
    files = sorted(path.name for path in exported.out.iterdir())
    assert files == ["card.md", "config.json", "model.safetensors", "tokenizer.json", "training.json", "words.json"]
    counts = word_counts(NAME, exported.out.parent)
    assert counts is not None
    assert counts.sentences == len(exported.split.train)
    assert counts.rare_words("dinosaur, here!") == (("dinosaur", 0), ("here", 1))
    content = (exported.out / "model.safetensors").read_bytes()
    stored = load_tensors(content)
    assert stored.keys() == exported.before.keys()
    assert "decoder.embedding.weight" not in stored  # shared with the encoder's
    for name, parameter in exported.model.named_parameters():  # what was scored is what ships
        assert stored[name].dtype == torch.float16
        assert torch.equal(stored[name], exported.before[name].detach().half())
        assert torch.equal(parameter, exported.before[name].half().float())
    assert exported.read("config.json")["sha256"] == hashlib.sha256(content).hexdigest()
    translator = load(NAME, device="cpu", folder=exported.out.parent)
    training = exported.read("training.json")
    for english, french in (training["book_sentences"] | training["book_strings"]).items():
        result = translator.translate(english)
        n = min(len(result.text), len(french))
        assert result.text[:n] == french[:n]  # cut at different lengths where they do not end


def test_scores_equal_a_recomputation_from_the_files(exported: Exported) -> None:
    translator = load(NAME, device="cpu", folder=exported.out.parent)
    references: dict[str, list[str]] = {}
    for pair in exported.split.test:
        references.setdefault(pair.english, []).append(pair.french)
    assert references["Go."] == ["Va !", "Allez !"]
    sentences = list(references)
    lower = [english.lower() for english in references]
    assert exported.translated[:3] == [sentences, sentences, lower]
    for key, search, texts, rows in (
        ("bleu_greedy", greedy_search, sentences, 128),
        ("bleu_beam_4", beam_search, sentences, 32),
        ("bleu_lower_case", greedy_search, lower, 128),
    ):
        found = translate_all(translator.model, translator.tokenizer, texts, search, CPU, rows=rows)
        expected = round(corpus_bleu(found, list(references.values())), 2)
        assert translator.card.scores[key] == exported.read("config.json")["scores"][key] == expected
    bins = exported.read("training.json")["bleu_by_length"]
    lengths = [len(translator.tokenizer.encode(sentence).ids) + 1 for sentence in sentences]  # the end counts
    edges = [*LENGTH_EDGES, max(lengths) + 1]
    counts = {low: sum(low <= n < high for n in lengths) for low, high in pairwise(edges) if low < high}
    assert {b["from"]: b["sentences"] for b in bins} == {low: count for low, count in counts.items() if count}
    assert sum(counts.values()) == 10


def test_the_records_and_the_card_have_the_numbers(exported: Exported) -> None:
    config, training = exported.read("config.json"), exported.read("training.json")
    assert (config["title"], config["task"]) == ("A test", "translation")
    assert config["model"] == {"vocab_size": exported.before["decoder.dense.bias"].numel(), **SPEC.architecture}
    assert training["curve"] == CURVE
    assert (training["updates"], training["seconds"], training["recipe"]["epochs"]) == (1234, 3723, 7)
    assert list(training["book_sentences"]) == ["Go.", "I lost.", "He's calm.", "I'm home."]
    assert list(training["book_strings"]) == ["go .", "i lost .", "he's calm .", "i'm home ."]
    card = (exported.out / "card.md").read_text(encoding="utf-8")
    for expected_text in (
        f"{sum(p.numel() for p in exported.before.values()):,} parameters",
        f"greedy {config['scores']['bleu_greedy']:.1f}, beam 4 {config['scores']['bleu_beam_4']:.1f}",
        f"not trained on: greedy {config['scores']['bleu_lower_case']:.1f}.",
        "22 pairs to train on,\n2 to validate, 11 to test",
        "1.75 epochs of the 7 planned, 1,234 updates",
        "(2.500 nats a token)",
    ):
        assert expected_text in card, expected_text


# Batches, and translations of many sentences

PAD = 0


def examples_of(lengths: list[tuple[int, int]]) -> list[Example]:
    """Examples of these lengths; the first source token tells them apart."""
    return [Example([9 + i, *[5] * (s - 1)], [1, *[6] * (t - 1)]) for i, (s, t) in enumerate(lengths)]


sizes = st.lists(st.tuples(st.integers(1, 12), st.integers(2, 12)), min_size=1, max_size=40)


@settings(max_examples=200)
@given(sizes, st.integers(1, 120), st.one_of(st.none(), st.integers(0, 5)))
def test_every_example_once_in_batches_as_full_as_they_can_be(
    lengths: list[tuple[int, int]], tokens: int, seed: int | None
) -> None:
    examples = examples_of(lengths)
    plans = plan_batches(examples, tokens, seed)
    assert sorted(i for plan in plans for i in plan) == list(range(len(examples)))
    for plan in plans:
        batch = collate([examples[i] for i in plan], PAD)
        assert batch.source.numel() + batch.target.numel() <= tokens or len(batch.source) == 1
    for plan, following in pairwise(plans if seed is None else []):
        more = [examples[i] for i in [*plan, following[0]]]
        assert len(more) * (max(len(e.source) for e in more) + max(len(e.target) for e in more)) > tokens


def test_the_order_and_the_padding_of_both_sides_by_hand() -> None:
    """A long source beside a long target: 4 tokens and 12 of padding."""
    assert plan_batches(examples_of([(10, 2), (1, 3)]), tokens=25) == [[0], [1]]
    assert plan_batches(examples_of([(10, 2), (1, 3)]), tokens=26) == [[0, 1]]
    shortest_first = [[1], [4], [3], [2], [0]]
    assert plan_batches(examples_of([(3, 9), (2, 2), (8, 5), (1, 5), (4, 2)]), tokens=1) == shortest_first


@pytest.mark.parametrize(("max_tokens", "count"), [(100, 3), (4, 2), (3, 1), (2, 0)])
def test_examples_begin_and_end_and_long_ones_are_left_out(max_tokens: int, count: int) -> None:
    pairs = [Pair("a a a", "b"), Pair("a", "b"), Pair("a", "b b b b")]
    tokenizer = train_tokenizer([text for pair in pairs for text in pair], vocab_size=50)
    a, b = (tokenizer.token_to_id(f"▁{letter}") for letter in "ab")
    expected = [Example([a, a, a, 2], [1, b, 2]), Example([a, 2], [1, b, 2]), Example([a, 2], [1, b, b, b, b, 2])]
    fitting = [e for e in expected if max(len(e.source), len(e.target)) <= max_tokens]
    assert encode_pairs(tokenizer, pairs, max_tokens) == fitting
    assert len(fitting) == count


def test_answers_stand_where_their_questions_stood(translator: Translator, pairs: list[Pair]) -> None:
    """A search that says its source back gives every sentence back in its place."""
    seen: list[tuple[tuple[int, ...], int]] = []

    def echo(
        model: EncoderDecoder, source: Tensor, valid_lens: Tensor, special: SpecialTokens, limit: int
    ) -> list[list[int]]:
        seen.append((tuple(source.shape), limit))
        assert not model.training
        return [row[:n] for row, n in zip(source.tolist(), valid_lens.tolist(), strict=True)]

    sentences = [pair.english for pair in pairs]
    model = copy.deepcopy(translator.model).train()
    assert translate_all(model, translator.tokenizer, sentences, echo, CPU, rows=5) == sentences
    assert [shape[0] for shape, _ in seen] == [5] * 6 + [2]
    assert [limit for _, limit in seen] == [2 * shape[1] + 10 for shape, _ in seen]
    widths = [shape[1] for shape, _ in seen]
    assert widths == sorted(widths)  # sentences of like length together


def test_bins_by_length() -> None:
    hypotheses = ["a b c d", "e f g h", "i j k l", "q r s t"]
    references = [["a b c d"], ["e f g x", "e f x h"], ["m n o p"], ["q r s t"]]
    bins = bleu_by_length(hypotheses, references, lengths=[1, 4, 5, 30], edges=(1, 5, 8, 20))
    assert bins == [
        {"from": 1, "to": 4, "sentences": 2, "bleu": round(corpus_bleu(hypotheses[:2], references[:2]), 2)},
        {"from": 5, "to": 7, "sentences": 1, "bleu": round(corpus_bleu(hypotheses[2:3], references[2:3]), 2)},
        {"from": 20, "to": 30, "sentences": 1, "bleu": 100.0},
    ]
    assert 0 < bins[0]["bleu"] < 100
