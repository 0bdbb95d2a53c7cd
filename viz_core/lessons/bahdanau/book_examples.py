"""The book's checks of its decoder, computed here: Dive into Deep Learning, section 11.4."""

import torch

from viz_core.models.seq2seq import Seq2SeqAttentionDecoder, Seq2SeqEncoder

VOCAB_SIZE, EMBED_SIZE, NUM_HIDDENS, NUM_LAYERS = 10, 8, 16, 2
BATCH, NUM_STEPS = 4, 7


@torch.no_grad()
def decoder_shapes() -> dict[str, tuple[int, ...]]:
    """Shapes of the decoder's logits and of what its state holds, for 4 sequences of 7 tokens from a vocabulary of 10.

    "output" (batch, steps, vocabulary), "keys" (batch, steps, hiddens), "hidden" (batch, hiddens) of one layer.
    """
    sizes = VOCAB_SIZE, EMBED_SIZE, NUM_HIDDENS, NUM_LAYERS
    encoder, decoder = Seq2SeqEncoder(*sizes).eval(), Seq2SeqAttentionDecoder(*sizes).eval()
    X = torch.zeros(BATCH, NUM_STEPS, dtype=torch.long)
    output, state = decoder(X, decoder.init_state(encoder(X)))
    return {
        "output": tuple(output.shape),
        "keys": tuple(state.enc_outputs.shape),
        "hidden": tuple(state.hidden_state[0].shape),
    }
