"""Two sentences that differ in a word: a model's inputs for both, and the words after them that are compared."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from jaxtyping import Float
from torch import Tensor

from viz_core.hub import HubError, HubModel, HubRun
from viz_core.hub.runs.token_text import Token
from viz_core.pretrained.tokenization import UNK

MAX_TOKENS = 48
"""Tokens of a sentence, at most: a sweep runs the model once for each layer and token."""
_WRITTEN = 24  # tokens that an encoder-decoder writes, to find where its two translations part


@dataclass(frozen=True)
class TwoSentences:
    """Two sentences, and the words after them whose logits are compared; "" for the model's own choice."""

    clean: str
    corrupted: str
    answer: str = ""
    other: str = ""
    # max_characters, max_tokens: of each sentence; None for no limit but `MAX_TOKENS`
    max_characters: int | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, eq=False)
class Pair:
    """A model's inputs for both sentences, and the ids of the two answers."""

    clean: dict[str, Any]
    corrupted: dict[str, Any]
    answers: tuple[int, int]
    runs: tuple[HubRun, HubRun]

    def metric(self, logits: Float[Tensor, "1 n vocab"]) -> Float[Tensor, ""]:
        """Return the logit of the first answer minus that of the second, after the last token."""
        return logits[0, -1, self.answers[0]] - logits[0, -1, self.answers[1]]


def sentence_pair(model: HubModel, sentences: TwoSentences) -> Pair:
    """Return the inputs of both sentences. HubError if they, or the words after them, cannot be compared."""
    letters, allowed = max(len(sentences.clean), len(sentences.corrupted)), sentences.max_characters
    if allowed is not None and letters > allowed:
        raise HubError(
            "This text has {count:,} characters; at most {most:,} are allowed here. Shorten it.",
            count=letters,
            most=allowed,
        )
    most = min(MAX_TOKENS, sentences.max_tokens or MAX_TOKENS)
    writes = "encoder" in model.card.num_layers
    first, second = (
        model.run(text, max_new_tokens=_WRITTEN if writes else 0, max_tokens=most)
        for text in (sentences.clean, sentences.corrupted)
    )
    if any(len(run.tokens) > most for run in (first, second)):
        raise HubError(
            "This text has {count:,} tokens; at most {most:,} are allowed here. Shorten it.",
            count=max(len(first.tokens), len(second.tokens)),
            most=most,
        )
    if [token.id for token in first.tokens] == [token.id for token in second.tokens]:
        raise HubError("Both sentences have the same tokens: change a word of one.")
    if len(first.tokens) != len(second.tokens):
        mine, theirs = sentences.clean.split(), sentences.corrupted.split()
        raise HubError(
            "The sentences need equally many tokens, but have {first:,} and {second:,}. They differ in {words} and "
            "{others}: choose words with as many tokens.",
            first=len(first.tokens),
            second=len(second.tokens),
            words=_among(mine, theirs),
            others=_among(theirs, mine),
        )
    if writes:
        first, second = _until_they_part(first, second, bool(sentences.answer and sentences.other))
    answers = [
        _answer(model, run, text, typed, writes)
        for run, text, typed in zip(
            (first, second), (sentences.clean, sentences.corrupted), (sentences.answer, sentences.other), strict=True
        )
    ]
    if answers[0] == answers[1]:
        word = f"“{plain_text(model.read(answers[:1])[0])}”"
        raise HubError("The word after both sentences is {word}: type two different words to compare.", word=word)
    inputs = [{name: each for name, each in run.inputs.items() if name != "logits_to_keep"} for run in (first, second)]
    return Pair(inputs[0], inputs[1], (answers[0], answers[1]), (first, second))


def _until_they_part(first: HubRun, second: HubRun, typed: bool) -> tuple[HubRun, HubRun]:
    """Return two translations cut before the first token in which they differ. HubError if none, and no words given."""
    written = [[token.id for token in run.target_tokens] for run in (first, second)]
    pairs = enumerate(zip(*written, strict=False))
    place = next((i for i, (a, b) in pairs if a != b), min(map(len, written)))
    if place == min(map(len, written)):
        if not typed:
            raise HubError("The model translates both sentences alike: type two words to compare.")
        place = 0
    cut = []
    for run in (first, second):
        name = "decoder_input_ids" if "decoder_input_ids" in run.inputs else "target"
        inputs = {**run.inputs, name: run.inputs[name][:, : place + 1]}
        cut.append(
            replace(
                run,
                inputs=inputs,
                decoder_tokens=run.decoder_tokens[: place + 1],
                target_tokens=run.target_tokens[: place + 1],
                output=run.output[: place + 1],
            )
        )
    return cut[0], cut[1]


def _answer(model: HubModel, run: HubRun, text: str, typed: str, writes: bool) -> int:
    """Return the id of the word that is compared: the one typed, a single known token, or the likeliest."""
    if not typed.strip():
        return int(run.output[-1].argmax())
    word, counts, tokenizer = typed.strip(), [], getattr(model.engine, "tokenizer", None)
    if writes:
        reads = [model.run(text, target=word)]
        found = [[token for token in each.target_tokens if not token.special] for each in reads]
    else:
        before = len(run.tokens)
        reads = [model.run(f"{text.rstrip()}{gap}{word}", max_new_tokens=0) for gap in (" ", "")]
        found = [list(each.tokens[before:]) for each in reads]
    for tokens in found:
        ids = [token.id for token in tokens]
        unknown = tokenizer.num_unknown(ids) if tokenizer else any(token.text == UNK for token in tokens)
        if len(ids) == 1 and not unknown and not tokens[0].special:
            return ids[0]
        counts.append(len(ids))
    if counts[0] < 2:
        raise HubError("The model does not know {word}: choose another word.", word=f"“{word[:40]}”")
    raise HubError(
        "{word} is {count} tokens of this model: choose a word that is one.", word=f"“{word[:40]}”", count=counts[0]
    )


def _among(words: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Return the words in which a sentence differs from another, quoted."""
    shared, found = list(others), []
    for word in words:
        if word in shared:
            shared.remove(word)
        else:
            found.append(f"“{word[:40]}”")
    return tuple(found[:4]) or ("–",)


def plain_text(token: Token) -> str:
    """Return the text of a token as it is read."""
    return token.text or token.label
