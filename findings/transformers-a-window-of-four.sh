#!/usr/bin/env bash
# transformers: a window setting of 4 means 4 keys, 2, 5 on both sides, 4 lopsided ones, or nothing, by family.
#
# Versions: transformers 5.23.0, torch 2.13.0, CPU. Run 2026-11-28.
# Guess: itself and 3 before in every decoder; up to 3 on each side in Gemma 3 without its causal mask and in T5Gemma 2's
# encoder; qwen2's use_sliding_window=True turns the window on.
# Seen (keys before and after the query that reach its output in a single layer): Gemma 3 without its causal mask 2 and 2,
# T5Gemma 2's encoder 1 and 2, ModernBERT's decoder 1 and 0. nemotron_h and Moshi see all 8 earlier keys. So does qwen2
# until max_window_layers=0 is set too.
# Output: mistral (3, 0), modernbert-decoder (1, 0), gemma3-both-sides (2, 2), t5gemma2-encoder (1, 2),
# nemotron_h (8, 0), moshi (8, 0), qwen2 (8, 0), qwen2-max_window_layers-0 (3, 0).
source "$(dirname "$0")/environment.bash"
in_environment torch==2.13.0 transformers==5.23.0 numpy==2.4.6 <<'PY'
import torch
import transformers as t

n, place = 16, 8
sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16}
sizes |= {"vocab_size": 64, "intermediate_size": 32, "max_position_embeddings": 64, "pad_token_id": 0}
sizes |= {"bos_token_id": 1, "eos_token_id": 2}
local = {"layer_types": ["sliding_attention"]}
one = {key: size for key, size in sizes.items() if key not in ("num_hidden_layers", "intermediate_size")}
picture = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
picture |= {"image_size": 28, "patch_size": 14}
text = sizes | local | {"sliding_window": 4}


def seen(model):
    model.requires_grad_(False).eval()
    found = []
    model.get_input_embeddings().register_forward_hook(lambda *given: found.append(given[2].requires_grad_()) or given[2])
    out = model(input_ids=torch.arange(5, 5 + n)[None], attention_mask=torch.ones(1, n, dtype=torch.long))
    grads = torch.autograd.grad((out.last_hidden_state[0, place] * torch.randn(32)).sum(), found[0])[0]
    keys = grads[0].abs().amax(-1).nonzero().flatten()
    return place - int(keys.min()), int(keys.max()) - place


torch.manual_seed(0)
qwen2 = {**{key: size for key, size in sizes.items() if key != "head_dim"}, "use_sliding_window": True, "sliding_window": 4}
t5gemma2 = t.T5Gemma2Config(
    encoder={"text_config": text, "vision_config": picture}, decoder=dict(text), image_token_index=60
)
modernbert = {"cls_token_id": 1, "sep_token_id": 2, "local_attention": 4}
models = {
    "mistral": (t.MistralModel(t.MistralConfig(**sizes, sliding_window=4)), (3, 0)),
    "modernbert-decoder": (t.ModernBertDecoderModel(t.ModernBertDecoderConfig(**sizes, **local, **modernbert)), (1, 0)),
    "gemma3-both-sides": (t.Gemma3TextModel(t.Gemma3TextConfig(**text, use_bidirectional_attention=True)), (2, 2)),
    "t5gemma2-encoder": (t.T5Gemma2Model(t5gemma2).get_encoder(), (1, 2)),
    "nemotron_h": (
        t.NemotronHModel(t.NemotronHConfig(**one, sliding_window=4, layers_block_type=["attention"])),
        (8, 0),
    ),
    "moshi": (t.MoshiModel(t.MoshiConfig(**one, num_hidden_layers=1, ffn_dim=32, sliding_window=4)), (8, 0)),
    "qwen2": (t.Qwen2Model(t.Qwen2Config(**qwen2)), (8, 0)),
    "qwen2-max_window_layers-0": (t.Qwen2Model(t.Qwen2Config(**qwen2, max_window_layers=0)), (3, 0)),
}
for name, (model, expected) in models.items():
    print(name, seen(model))
    assert seen(model) == expected, name
PY
