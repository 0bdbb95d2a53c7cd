#!/usr/bin/env bash
# Normalizers of tokenizers that shorten text: the span covers one character of those replaced, the last or the first.
#
# Version: tokenizers 0.22.1. Run 2026-11-28.
# Guess: a token that a normalizer made from three characters has the span of all three.
# Seen: Replace("abc", "x") gives x the span of the c alone. NFC, which makes one letter of e and a combining accent, gives
# it the span of the e alone. The other characters are in no token's span. The other way round (x replaced by abc, or one
# ligature taken apart) each new letter has the whole span.
# Output: Replace on "zabcd" (0, 1) (3, 4) (4, 5); NFC on "ae\u0301b" (0, 1) (1, 2) (3, 4); NFKC on "a\ufb01b" (0, 1)
# (1, 2) (1, 2) (2, 3).
source "$(dirname "$0")/environment.bash"
in_environment tokenizers==0.22.1 <<'PY'
from tokenizers import Tokenizer, models, normalizers

letters = {letter: i for i, letter in enumerate("?abcdefixz\u00e9")}


def spans(normalizer, text):
    tokenizer = Tokenizer(models.BPE(vocab=letters, merges=[], unk_token="?"))
    tokenizer.normalizer = normalizer
    encoding = tokenizer.encode(text)
    print(type(normalizer).__name__, ascii(text), [ascii(token) for token in encoding.tokens], encoding.offsets)
    return encoding.offsets


assert spans(normalizers.Replace("abc", "x"), "zabcd") == [(0, 1), (3, 4), (4, 5)]
assert spans(normalizers.NFC(), "ae\u0301b") == [(0, 1), (1, 2), (3, 4)]
assert spans(normalizers.Replace("x", "abc"), "zxd") == [(0, 1), (1, 2), (1, 2), (1, 2), (2, 3)]
assert spans(normalizers.NFKC(), "a\ufb01b") == [(0, 1), (1, 2), (1, 2), (2, 3)]
PY
