#!/usr/bin/env bash
# ESM's token dropout also scales the embeddings in evaluation, and by a number that counts the mask tokens.
#
# Versions: transformers 5.23.0, torch 2.13.0, CPU, a small random model. Run 2026-11-28.
# Guess: token_dropout=True does nothing in evaluation mode, as any dropout.
# Seen: without a mask token every embedding is multiplied by 0.88 = 1 - 0.15 * 0.8. One mask token among ten residues
# sets its own embedding to zero and changes the factor of the nine others to 0.88 / 0.9. To mask one residue hence moves
# the input of all the others, before any attention.
# Output (factor of each residue): no mask [0.88 ...], one mask [0.978 0.978 0.978 0 0.978 ...].
source "$(dirname "$0")/environment.bash"
in_environment transformers==5.23.0 torch==2.13.0 numpy==2.4.6 <<'PY'
import numpy as np
import torch
from transformers import EsmConfig, EsmModel

torch.manual_seed(0)
sizes = dict(vocab_size=33, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
config = EsmConfig(**sizes, position_embedding_type="rotary", token_dropout=True, mask_token_id=32, pad_token_id=1)
embeddings = EsmModel(config, add_pooling_layer=False).eval().embeddings


@torch.no_grad()
def factors(ids):
    scaled = embeddings(input_ids=ids, attention_mask=torch.ones_like(ids))
    return (scaled / embeddings.word_embeddings(ids))[0].mean(-1).numpy()


ids = torch.arange(4, 14)[None]
plain = factors(ids)
ids[0, 3] = config.mask_token_id
masked = factors(ids)
print("no mask", plain.round(3), "one mask", masked.round(3))
np.testing.assert_allclose(plain, 0.88, rtol=1e-5)
np.testing.assert_allclose(masked, np.where(np.arange(10) == 3, 0, 0.88 / 0.9), rtol=1e-5)
PY
