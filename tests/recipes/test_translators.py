"""What ships: files that say what the model is and how well it does, and the batches that it is scored in."""

import copy
import hashlib
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load as load_tensors
from torch import Tensor

from recipes.copying import Case, copying_cases, reserved
from recipes.loop import RunOptions
from recipes.pair_augmentation import Variations
from recipes.sentence_pairs import Example, Pair, Split, collate, plan_batches, train_tokenizer, translate_all
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


# Batches, and translations of many sentences

PAD = 0


def examples_of(lengths: list[tuple[int, int]]) -> list[Example]:
    """Examples of these lengths; the first source token tells them apart."""
    return [Example([9 + i, *[5] * (s - 1)], [1, *[6] * (t - 1)]) for i, (s, t) in enumerate(lengths)]


sizes = st.lists(st.tuples(st.integers(1, 12), st.integers(2, 12)), min_size=1, max_size=40)


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


TRAIN = [Pair("I am 30.", "J'ai 30 ans."), Pair("Tom is here.", "Tom est ici."), Pair("Go.", "Va !")]
TEST = [Pair("She has 12 cats.", "Elle a 12 chats."), Pair("Tom is away.", "Tom est parti."), Pair("Hi.", "Salut !")]
SPLIT = Split(TRAIN, [], TEST)
CATS = Case("numbers", "…", "Elle a 7 432 chats à 5 h.", ("7", "432"))
TWO = Case("names", "…", "…", ("Zorb", "Anka"))


def test_cases_hold_what_no_training_pair_does() -> None:
    cases = copying_cases(SPLIT, per_kind=20)
    assert [case.kind for case in cases] == ["numbers"] * 20 + ["names"] * 20
    assert cases == copying_cases(SPLIT, per_kind=20)
    trained = set(re.findall(r"\w+", " ".join(text for pair in TRAIN for text in pair)))
    assert not trained & reserved(cases)
    assert len(reserved(cases)) == 40, "each is another"
    for case in cases:
        (copied,) = case.copied
        assert copied in case.english
        assert copied in case.reference
        assert case.is_right(case.reference)
    varied = Variations.of([*TRAIN, *TEST], reserved(cases)).epoch(0)
    assert not reserved(cases) & set(re.findall(r"\w+", " ".join(pair.english for pair in varied)))
    assert copying_cases(Split(TRAIN, [], [Pair("Hi.", "Salut !")])) == ()


def test_numbers_are_right_by_their_digits_and_names_as_whole_words() -> None:
    for case, french, right in (
        (CATS, "Elle a 7432 chats à 5 h.", True),
        (CATS, "Elle a 7 423 chats à 5 h.", False),
        (CATS, "Elle a 7 432 chats.", False),
        (CATS, "Elle a 7 432 chats à 5 h 1.", False),
        (TWO, "d'Anka et Zorb.", True),
        (TWO, "Zorba et Anka", False),
        (TWO, "zorb Anka", False),
    ):
        assert case.is_right(french) is right, french
