"""Contributions of keys, residuals of a translation, a decoder without its causal mask, and the book's examples."""

from functools import cache
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.maps.contributions import contribution_norms, contribution_sum, shares_of_call
from viz_core.maps.fingerprints import future_weight
from viz_core.models.anatomy import Step, encoder_steps, output_projection
from viz_core.models.transformer import TransformerEncoder, TransformerEncoderBlock
from viz_core.models.transformer_decoder import TransformerDecoder
from viz_core.pretrained import Translation, Translator
from viz_core.trace import Trace, record


class Contributions(NamedTuple):
    """One head's weights, and the lengths of the vectors that its keys add to the layer's output."""

    weights: Float[np.ndarray, "queries keys"]
    norms: Float[np.ndarray, "queries keys"]
    residual: float  # max |all vectors of the layer added - its output without the bias|

    def shares(self, key: int) -> tuple[float, float]:
        """A key's part of the weight, and of the lengths, 0 to 1, on average over queries."""
        part = self.norms[:, key] / self.norms.sum(axis=-1)
        return float(self.weights[:, key].mean()), float(part.mean())


class MarkByLayer(NamedTuple):
    """A key's part of all weight, and of all lengths added, 0 to 1: in each layer, over heads and queries alike."""

    weights: tuple[float, ...]
    shares: tuple[float, ...]

    @property
    def rest(self) -> float:
        """The key's share of weight minus its share of contributions, over all layers."""
        return float(np.mean(self.weights) - np.mean(self.shares))


@torch.inference_mode()
def contributions_of(translator: Translator, translation: Translation, site: str, head: int) -> Contributions:
    """The weights and contributions of one head in the pass over a finished translation."""
    trace = _recorded(translator, translation)
    call, W_o = trace[site], output_projection(translator.model, site)
    norms = contribution_norms(call, W_o)[0, head]
    name = f"{call.stack}.{call.layer}.{'cross' if call.kind == 'cross' else 'attention'}"
    written = trace.states[name] if W_o.bias is None else trace.states[name] - W_o.bias
    residual = float((contribution_sum(call, W_o) - written.cpu()).abs().max())
    return Contributions(call.weights(head=head)[0].numpy(), norms.numpy(), residual)


@torch.inference_mode()
def mark_by_layer(
    translator: Translator, translation: Translation, site: str, key: int, as_long: bool = False
) -> MarkByLayer:
    """The share of one key, such as the end mark, in every layer with attention of this site's kind.

    `as_long` is as if the vectors of all keys were of one length: then a share is a weight.
    """
    trace = _recorded(translator, translation)
    kind = trace[site].stack, trace[site].kind
    found = []
    for call in (call for call in trace if (call.stack, call.kind) == kind):
        shares = call if as_long else shares_of_call(call, output_projection(translator.model, call.site))
        found.append([float(maps.weights(keys=key).mean()) for maps in (call, shares)])
    return MarkByLayer(*zip(*found, strict=True))


def _recorded(translator: Translator, translation: Translation) -> Trace:
    """The pass over a finished translation, with its values and states."""
    with record(values=True, states=True) as trace:
        translator.model(*translator.teacher_forced(translation.source_ids, translation.target_ids))
    return trace


def translation_residuals(translator: Translator, translation: Translation) -> dict[str, float]:
    """How far a translation is from what must be true of it, by the name of each claim: nothing looks ahead or leaks,
    one pass equals cached steps. That rows sum to 1 is known from the thumbnails, `MapGroup.row_error`."""
    decoder = [call for call in translation.trace if (call.stack, call.kind) == ("decoder", "self")]
    return {
        "future": max(future_weight(call) for call in decoder),
        "leak": future_leak(translator, translation, len(translation.target_ids) - 1),
        "cache": translation.cache_error,
    }


@torch.inference_mode()
def future_leak(translator: Translator, translation: Translation, step: int) -> float:
    """max change of the logits before `step` when the target token at `step` becomes another one."""
    source, target, valid_lens = translator.teacher_forced(translation.source_ids, translation.target_ids)
    both = target.repeat(2, 1)  # as it is, and changed: one pass
    both[1, step] = (both[1, step] + 1) % translator.tokenizer.get_vocab_size()
    before, after = translator.model(source.repeat(2, 1), both, valid_lens.repeat(2))[:, :step]
    return float((before - after).abs().max()) if step else 0.0


@torch.inference_mode()
def position_wise_error(encoder: TransformerEncoder, num_positions: int = 8) -> float:
    """max difference between the first feed-forward net's outputs for one vector put at several positions."""
    twins = encoder.embedding.weight[:1].expand(1, num_positions, -1)
    outputs = encoder.blocks[0].ffn(twins)
    return float((outputs - outputs[:, :1]).abs().max())


@torch.inference_mode()
def encoder_walk(translator: Translator, translation: Translation) -> tuple[tuple[Step, ...], dict[str, float]]:
    """Every step of the encoder, and residuals: "walk" of its own output, "twin" of one vector at several positions."""
    encoder = translator.model.encoder
    source = torch.tensor([translation.source_ids], device=translator.device)
    steps = encoder_steps(encoder, source)
    error = float((steps[-1].output - encoder(source)).abs().max())
    return steps, {"walk": error, "twin": position_wise_error(encoder)}


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


_BATCH, _STEPS, _HIDDENS, _FFN, _HEADS = 2, 100, 24, 48, 8


@cache
@torch.no_grad()
def encoder_shapes() -> dict[str, tuple[int, ...]]:
    """Shapes after one encoder block, and after an encoder of 200 words and two blocks: 24 wide, 48 within, 8 heads."""
    block = TransformerEncoderBlock(_HIDDENS, _FFN, _HEADS, 0.5).eval()
    encoder = TransformerEncoder(200, _HIDDENS, _FFN, _HEADS, 2, 0.5).eval()
    valid_lens = torch.tensor([3, 2])
    return {
        "block": tuple(block(torch.ones(_BATCH, _STEPS, _HIDDENS), valid_lens).shape),
        "encoder": tuple(encoder(torch.ones(_BATCH, _STEPS, dtype=torch.long), valid_lens).shape),
    }


@cache
def normalised_examples() -> tuple[torch.Tensor, torch.Tensor]:
    """Layer norm and batch norm of the examples (1, 2) and (2, 3), without gain and bias."""
    X = torch.tensor([[1.0, 2.0], [2.0, 3.0]])
    return F.layer_norm(X, (2,)), F.batch_norm(X, None, None, training=True)
