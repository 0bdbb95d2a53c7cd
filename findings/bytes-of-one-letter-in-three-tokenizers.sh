#!/usr/bin/env bash
# A letter cut into byte tokens: three tokenizers give its pieces three kinds of offsets.
#
# Versions: tokenizers 0.22.1, sentencepiece 0.2.1, tiktoken 0.12.0. Run 2026-11-28.
# Guess: each of the four byte tokens of an emoji gets the span of the whole emoji in all three.
# Seen: so in tokenizers. sentencepiece gives the first three pieces an empty span and the last one the whole letter.
# tiktoken gives the start of the letter four times and no end, so the next token's start is not this token's end.
# To colour text by the attention of its tokens, a tool hence has to sum over pieces in three ways.
# Output (spans of the emoji at position 2): tokenizers (2, 3) four times, sentencepiece (2, 2) three times and (2, 3),
# tiktoken 2 2 2 2.
source "$(dirname "$0")/environment.bash"
in_environment tokenizers==0.22.1 sentencepiece==0.2.1 tiktoken==0.12.0 numpy==2.4.6 <<'PY'
import io

import sentencepiece
import tiktoken
from tokenizers import Tokenizer, models, pre_tokenizers

text = "a 🙂b"
alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
byte_level = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(alphabet)}, merges=[]))
byte_level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
spans = byte_level.encode(text).offsets[2:6]

model = io.BytesIO()
training = dict(vocab_size=268, byte_fallback=True, hard_vocab_limit=False, model_type="bpe", minloglevel=2)
sentences = iter(["a b ab ba"] * 20)
sentencepiece.SentencePieceTrainer.train(sentence_iterator=sentences, model_writer=model, **training)
processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
pieces = processor.encode(text, out_type="immutable_proto").pieces
pieces = [(piece.begin, piece.end) for piece in pieces if piece.piece.startswith("<0x")]

ranks = {bytes([i]): i for i in range(256)}
encoding = tiktoken.Encoding("bytes", pat_str=r"[\s\S]", mergeable_ranks=ranks, special_tokens={})
starts = encoding.decode_with_offsets(encoding.encode(text))[1][2:6]
print("tokenizers", spans, "sentencepiece", pieces, "tiktoken", starts)
assert spans == [(2, 3)] * 4
assert pieces == [(2, 2)] * 3 + [(2, 3)]
assert starts == [2] * 4
PY
