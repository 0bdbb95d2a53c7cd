"""The translators that ship, English to French: three architectures, one split, one tokenizer, one loop."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from recipes.alignments import record_alignments
from recipes.copying import copying_cases, record_copying
from recipes.files import format_seconds, settings_table, ship_weights, write_checkpoint
from recipes.loop import RunOptions
from recipes.sentence_pairs import (
    ARCHIVE_URL,
    LICENCE,
    SOURCE,
    Split,
    bleu_by_length,
    group_references,
    load_pairs,
    record_word_counts,
    split_pairs,
    translate_all,
)
from recipes.translation import TranslationConfig, TranslationState, train_translation
from viz_core.models.encoder_decoder import EncoderDecoder
from viz_core.pretrained import build_translation_model, load_translator
from viz_core.pretrained.bleu import corpus_bleu
from viz_core.pretrained.decoding import beam_search, greedy_search
from viz_core.pretrained.shipped import read_card
from viz_core.pretrained.translator import read_translator

BOOK_SENTENCES = ("Go.", "I lost.", "He's calm.", "I'm home.")
BOOK_STRINGS = ("go .", "i lost .", "he's calm .", "i'm home .")  # the same as the book gives them to its model
_VARIED = """
Pairs in which a number or a name stands on both sides were also shown with others in its place, new ones in each
epoch; none of these is among those that copying is measured with.
"""
LENGTH_EDGES = (1, 5, 8, 11, 14, 17, 21)  # source tokens, end of sentence included


@dataclass(frozen=True)
class TranslatorSpec:
    """Architecture and training configuration of a translator."""

    title: str
    description: str  # first words of its card
    architecture: dict[str, Any]  # its config without the size of the vocabulary
    config: TranslationConfig


# 16 is the root of 256: the embedding is shared with the output layer and drawn that much smaller.
_GRU = {"embed_size": 256, "num_hiddens": 256, "num_layers": 2, "dropout": 0.1, "embed_scale": 16.0}
# Orthogonal steps are worth their price where products run in bfloat16; a GRU's do not on a CPU.
_GRU_CONFIG = TranslationConfig(batch_tokens=2048, muon_lr=None, adam_lr=2e-3, curve_sentences=300)

TRANSLATORS = {
    "transformer-en-fr": TranslatorSpec(
        "Transformer, English to French",
        "the Transformer of Vaswani et al. (2017), post-norm with sinusoidal positions",
        {
            "architecture": "transformer",
            "num_hiddens": 256,
            "ffn_num_hiddens": 1024,
            "num_heads": 8,
            "num_blks": 3,
            "dropout": 0.05,
        },
        TranslationConfig(
            muon_lr=5e-4,
            adam_lr=2.5e-4,
            warm_up=0.03,
            decay_from=0.05,
            weight_decay=0.05,
            byte_fallback=True,
            vary_pairs=True,
            curve_sentences=300,
            spread_penalty=0.25,
            max_score_range=30.0,
            guide_penalty=0.05,
            guides={
                "encoder.0.self": "<>..<...",
                "encoder.1.self": "<>..<...",
                "encoder.2.self": "<>><....",
                "decoder.0.self": "<..<.=..",
                "decoder.1.self": "<..<...<",
                "decoder.2.self": "<<..<...",
            },
            align_penalty=0.1,
            aligned=("decoder.2.cross", 2),
            reader=("decoder.0.cross", 4),
            rounded=True,
            teacher_share=0.5,
            start="transformer-en-fr",
            beam_sentences=60_000,
        ),
    ),
    "bahdanau-en-fr": TranslatorSpec(
        "GRU with attention, English to French",
        "RNNsearch of Bahdanau, Cho and Bengio (2015), small: a bidirectional GRU encoder, a GRU decoder with\n"
        "additive attention and maxout output; the end mark of the source is not a key",
        {
            "architecture": "rnnsearch",
            "embed_size": 128,
            "num_hiddens": 128,
            "num_layers": 1,
            "dropout": 0.1,
            "embed_scale": 128**0.5,
        },
        replace(_GRU_CONFIG, vocab_size=4000, curve_sentences=100),
    ),
    "seq2seq-en-fr": TranslatorSpec(
        "GRU without attention, English to French",
        "a GRU encoder and decoder joined by one fixed vector, after Cho et al. (2014)",
        {"architecture": "seq2seq", **_GRU},
        _GRU_CONFIG,
    ),
}


def train(name: str, data: Path, run: RunOptions, epochs: int | None) -> None:
    """Train one of TRANSLATORS, evaluate it on the test split and write the checkpoint with its card."""
    spec = TRANSLATORS[name]
    config = spec.config if epochs is None else replace(spec.config, epochs=epochs)
    split = split_pairs(load_pairs(data))
    start = None  # what training begins with, and what it learns from to its end
    if config.start is not None and (config.teacher_share or config.beam_sentences or not run.resume):
        start = load_translator(config.start, run.device)
    model, tokenizer, state = train_translation(
        lambda vocab_size: build_translation_model({"vocab_size": vocab_size, **spec.architecture}),
        split,
        config,
        run,
        start,
    )
    export_translator(name, spec, model, tokenizer, split, state, config, run)


def export_translator(
    name: str,
    spec: TranslatorSpec,
    model: EncoderDecoder,
    tokenizer: Tokenizer,
    split: Split,
    state: TranslationState,
    config: TranslationConfig,
    run: RunOptions,
) -> None:
    """Round to float16, score what ships on the test split, and write the files of a checkpoint.

    Scores are BLEU with all references: greedy, with beam 4, and greedy where the English is in lower case.
    """
    out, device = run.out, run.device
    digest = ship_weights(model, out / "model.safetensors")
    references = group_references(split.test)
    sentences = list(references)
    wanted = list(references.values())

    def greedy(texts: Sequence[str]) -> list[str]:
        return translate_all(model, tokenizer, texts, greedy_search, device)

    hypotheses = {
        "greedy": greedy(sentences),
        "beam_4": translate_all(model, tokenizer, sentences, beam_search, device, rows=32),
        "lower_case": greedy([sentence.lower() for sentence in sentences]),
    }
    scores = {f"bleu_{search}": round(corpus_bleu(texts, wanted), 2) for search, texts in hypotheses.items()}
    lengths = [len(e.ids) + 1 for e in tokenizer.encode_batch(sentences)]
    training = {
        **state.record(config, device),
        "bleu_by_length": bleu_by_length(hypotheses["greedy"], wanted, lengths, LENGTH_EDGES),
        "book_sentences": dict(zip(BOOK_SENTENCES, greedy(BOOK_SENTENCES), strict=True)),
        "book_strings": dict(zip(BOOK_STRINGS, greedy(BOOK_STRINGS), strict=True)),
    }
    published = {
        "title": spec.title,
        "task": "translation",
        "licence": LICENCE,
        "sha256": digest,
        "scores": scores,
        "parameters": sum(p.numel() for p in model.parameters()),
        "model": {"vocab_size": tokenizer.get_vocab_size(), **spec.architecture},
    }
    write_checkpoint(out, published, training, translation_card(name, spec, published, training, split))
    shipped = read_translator(read_card(out), out, device)
    record_alignments(shipped, out)
    record_copying(shipped, copying_cases(split), out)
    record_word_counts(split.train, out)


def translation_card(
    name: str, spec: TranslatorSpec, published: dict[str, Any], training: dict[str, Any], split: Split
) -> str:
    """The card of a translator, from what its export wrote into config.json (`published`) and training.json."""
    curve, config = training["curve"], training["recipe"]
    optimiser = "AdamW" if config["muon_lr"] is None else "Muon for matrices and AdamW for the rest"
    best = min(point["validation_loss"] for point in curve)
    settings = settings_table(published["model"], config)
    varied = _VARIED if config.get("vary_pairs") else ""
    notes = "".join(f"\n{each}\n" for each in training.get("notes", []))
    return f"""# {spec.title}

`{name}`: {spec.description},
{published["parameters"]:,} parameters, one matrix shared by both embeddings and the output layer. Weights in float16.

{_scores(published["scores"], training, len(group_references(split.test)))}
## Data

{SOURCE}; {ARCHIVE_URL}. Licence: {LICENCE}.
Cleaned by NFKC with plain spaces and straight apostrophes. Split by a SHA-256 hash of the English sentence,
so that all translations of a sentence fall on one side: {len(split.train):,} pairs to train on,
{len(split.validation):,} to validate, {len(split.test):,} to test. The vocabulary was learned from the
training pairs alone.

## Training

{curve[-1]["epoch"]:.2f} epochs of the {config["epochs"]} planned, {training["updates"]:,} updates by {optimiser} with
batches of at most {config["batch_tokens"]:,} tokens, in {format_seconds(training["seconds"])} on {training["device"]}.
Validated after each epoch; the weights are those with the lowest validation loss ({best:.3f} nats a token).
{notes}{varied}
Translators that had other numbers of epochs, other batches or another optimiser differ in more than architecture:
a comparison of their scores leans towards the one that was trained further.

| setting | value |
| --- | --- |
{settings}

## Limits

Short everyday sentences, as learners collect them: most have fewer than a dozen words. Long or specialised
text, names it never met and anything but English come out poorly. Forms of address (tu, vous) and genders
that English leaves open are chosen as the data happens to have them.
"""


def _scores(scores: dict[str, float], training: dict[str, Any], num_sentences: int) -> str:
    """The card's section on how well the model does, and what it does badly."""
    bins = "\n".join(
        f"| {b['from']} to {b['to']} | {b['sentences']:,} | {b['bleu']:.1f} |" for b in training["bleu_by_length"]
    )
    sentences, strings = (
        "\n".join(f"| {english} | {french} |" for english, french in training[name].items())
        for name in ("book_sentences", "book_strings")
    )
    return f"""## Scores

On the {num_sentences:,} English sentences of the test split, all references, sacrebleu (13a tokens),
with the float16 weights: greedy {scores["bleu_greedy"]:.1f}, beam 4 {scores["bleu_beam_4"]:.1f}.
With the same sentences in lower case, which it was not trained on: greedy {scores["bleu_lower_case"]:.1f}.

| source tokens | sentences | BLEU, greedy |
| --- | --- | --- |
{bins}

The book's four sentences:

| English | French |
| --- | --- |
{sentences}

The same four as the book gives them to its own model, in lower case and with a blank before each full stop:

| English | French |
| --- | --- |
{strings}
"""
