"""The two models of this chapter."""

PLAIN, ATTENTION = "seq2seq-en-fr", "bahdanau-en-fr"
