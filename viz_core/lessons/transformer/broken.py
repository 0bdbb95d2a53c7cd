"""A decoder without its causal mask, like the book's in evaluation with several steps at once."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.maps.residuals import future_weight
from viz_core.models.transformer_decoder import TransformerDecoder
from viz_core.pretrained import Translation, Translator
from viz_core.trace import record


@torch.inference_mode()
def unmasked_residuals(translator: Translator, translation: Translation) -> dict[str, float]:
    """`translation_residuals` of the same decoder without its causal mask."""
    source, target, valid_lens = translator.teacher_forced(translation.source_ids, translation.target_ids)
    model = translator.model
    memory = model.encoder(source, valid_lens)
    changed = target.clone()
    changed[:, -1] = (changed[:, -1] + 1) % translator.tokenizer.get_vocab_size()
    with record() as trace:
        before = unmasked_logits(model.decoder, target, memory, valid_lens)
    after = unmasked_logits(model.decoder, changed, memory, valid_lens)
    return {
        "future": max(future_weight(call) for call in trace if call.kind == "self"),
        "leak": float((before - after)[:, :-1].abs().max()) if target.shape[1] > 1 else 0.0,
        "cache": float((before - model(source, target, valid_lens)).abs().max()),
    }


@torch.inference_mode()
def unmasked_map(translator: Translator, translation: Translation, layer: int, head: int) -> Float[Tensor, "n n"]:
    """Weights of a head of the decoder's self-attention if each step saw every other."""
    source, target, valid_lens = translator.teacher_forced(translation.source_ids, translation.target_ids)
    memory = translator.model.encoder(source, valid_lens)
    with record() as trace:
        unmasked_logits(translator.model.decoder, target, memory, valid_lens)
    return [call for call in trace if call.kind == "self"][layer].weights(head=head)[0].squeeze(0)


def head_off_first(translation: Translation) -> tuple[int, int]:
    """Layer and head of the decoder's self-attention with the least weight on the first key."""
    calls = [call for call in translation.trace if (call.stack, call.kind) == ("decoder", "self")]
    first = torch.stack([call.weights()[0, :, :, 0].mean(dim=-1) for call in calls])
    return divmod(int(first.argmin()), first.shape[1])


def unmasked_logits(
    decoder: TransformerDecoder,
    target: Int[Tensor, "batch n"],
    memory: Float[Tensor, "batch keys d"],
    valid_lens: Int[Tensor, " batch"] | None,
) -> Float[Tensor, "batch n vocab"]:
    """The decoder's logits if each step saw every other, later ones too."""
    H = decoder.pos_encoding(decoder.embed(target), offset=0)
    for block in decoder.blocks:
        Z = block.addnorm1.branch(H)
        H = block.addnorm1(H, block.attention1(Z, Z, Z))
        Z = block.addnorm2.branch(H)
        H = block.addnorm2(H, block.attention2(Z, memory, memory, valid_lens))
        H = block.addnorm3(H, block.ffn(block.addnorm3.branch(H)))
    return decoder.dense(decoder.norm(H))


def saved_tensors(model: nn.Module) -> int:
    """How many tensors its modules hold beside parameters and buffers: maps that a second thread would overwrite."""
    return sum(isinstance(value, Tensor) for module in model.modules() for value in vars(module).values())
