"""A translation with its attention."""

from dataclasses import dataclass
from typing import Any

from viz_core.maps.alignments import HeadErrors
from viz_core.pretrained.word_probabilities import WordProbability
from viz_core.runtime.provenance import UNKNOWN, Provenance
from viz_core.runtime.viewer import show
from viz_core.trace import Trace


@dataclass(frozen=True)
class Translation:
    """A translation with its attention.

    Row i of a decoder map is the step that writes `target_tokens[i]`; its own keys are
    `decoder_tokens`: the beginning and the words written before.
    """

    text: str
    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    decoder_tokens: tuple[str, ...]
    source_ids: tuple[int, ...]
    target_ids: tuple[int, ...]
    log_probability: float  # natural logarithm of p(target | source)
    log_probabilities: tuple[float, ...]  # of each target token, given those before it: the terms of that sum
    words: tuple[WordProbability, ...]  # written words with their alternatives
    cache_error: float  # max |logits of the recorded pass - logits of the cached steps that wrote it|
    num_unknown: int  # source tokens the vocabulary does not have
    complete: bool  # False where max_new_tokens cut it short
    trace: Trace
    source_words: tuple[int, ...]  # the number of the word that each source token is a piece of
    target_words: tuple[int, ...]
    decoder_words: tuple[int, ...]
    alignment_errors: HeadErrors = ()  # as in its model's training.json; or none
    made: Provenance = UNKNOWN  # by which model, of which text

    def __repr__(self) -> str:
        """The text, the numbers of tokens and the trace, in one line."""
        sizes = f"{len(self.source_tokens)} tokens into {len(self.target_tokens)}"
        attention = repr(self.trace) if len(self.trace) else "no attention"
        return f"Translation({self.text!r}: {sizes}, {attention})"

    def view(self) -> Any:
        """Return the attention view of all maps, as `viz_core.view` does."""
        return show(self)
