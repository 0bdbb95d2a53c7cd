"""Every step of the attention decoder's translation, and the book's checks of that decoder."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.maps.contributions import contribution_sum
from viz_core.models.seq2seq import Encoded, Seq2SeqAttentionDecoder, Seq2SeqEncoder
from viz_core.pretrained import Translation, Translator
from viz_core.trace import record


@dataclass(frozen=True)
class DecoderSteps:
    """All steps of one sentence, on the CPU in float32. Step t writes target token t."""

    queries: Float[Tensor, "steps d"]  # s_(t-1): the state that asks
    weights: Float[Tensor, "steps keys"]  # a_t: how much it looks at each source word
    contexts: Float[Tensor, "steps key_size"]  # c_t: what it gets
    probabilities: Float[Tensor, "steps vocab"]  # of the word it writes

    def likeliest(self, step: int, count: int) -> list[tuple[int, float]]:
        """The `count` likeliest tokens of a step with their probabilities, the likeliest first."""
        top = self.probabilities[step].topk(min(count, self.probabilities.shape[1]))
        return list(zip(top.indices.tolist(), top.values.tolist(), strict=True))


@torch.inference_mode()
def decoder_steps(translator: Translator, translation: Translation) -> DecoderSteps:
    """Decode the finished translation once more, one step at a time, and keep what each step saw.

    s_(t-1) asks; a_t = softmax(score(s_(t-1), h)); c_t = sum_j a_tj h_j; s_t = GRU([c_t; y_(t-1)], s_(t-1))
    (Bahdanau 2015, section 3.1).
    """
    decoder = translator.model.decoder
    if not isinstance(decoder, Seq2SeqAttentionDecoder):
        raise ValueError(f"expected a decoder with additive attention, got {type(decoder).__name__}")
    source, target, valid_lens = translator.teacher_forced(translation.source_ids, translation.target_ids)
    state = decoder.init_state(translator.model.encoder(source, valid_lens), valid_lens)
    queries, weights, contexts, probabilities = [], [], [], []
    for token in target.split(1, dim=1):
        query = state.hidden_state[-1]
        weigh = decoder.attention.weigh(query[:, None], state.projected, state.enc_valid_lens)
        logits, state = decoder(token, state)
        queries.append(query[0])
        weights.append(weigh[0, 0])
        contexts.append(decoder.attention.pool(weigh, state.enc_outputs)[0, 0])
        probabilities.append(logits[0, -1].float().softmax(dim=-1))
    return DecoderSteps(*(torch.stack(rows).float().cpu() for rows in (queries, weights, contexts, probabilities)))


def word_weights(weights: Float[Tensor, "steps keys"], words: Sequence[int]) -> Float[Tensor, "steps words"]:
    """Weights of whole words: the sums of their pieces'.

    Args:
        words: the number of the word that each token is a piece of, from 0.
    """
    summed = torch.zeros(len(weights), words[-1] + 1, dtype=weights.dtype)
    return summed.index_add_(1, torch.tensor(words), weights)


@torch.inference_mode()
def weights_by_formula(
    translator: Translator, translation: Translation, steps: DecoderSteps, error: str = ""
) -> Float[Tensor, "steps keys"]:
    """Weights of each step by the formula in float64; 0 for keys that are never attended to.

    e_tj = w_v^T tanh(W_q s_(t-1) + W_k h_j), a_t = softmax(e_t) (Bahdanau 2015, appendix A.1.2)

    Args:
        error: "no-tanh" leaves out tanh: a sum in which the query cancels. "undivided": exp(e_tj).
    """
    bend = torch.nn.Identity() if error == "no-tanh" else torch.nn.Tanh()
    attention = translator.model.decoder.attention
    W_q, W_k, w_v = (layer.weight.cpu().double() for layer in (attention.W_q, attention.W_k, attention.w_v))
    keys = _source_states(translator, translation) @ W_k.T
    scores = torch.stack([bend(query + keys) @ w_v[0] for query in steps.queries.double() @ W_q.T])
    weights = torch.zeros_like(steps.weights, dtype=torch.float64)
    weights[:, : len(keys)] = scores.exp() if error == "undivided" else scores.softmax(dim=1)
    return weights


def _source_states(translator: Translator, translation: Translation) -> Float[Tensor, "keys key_size"]:
    """h, in float64 on the CPU, of the keys that may be attended to."""
    source, _, valid_lens = translator.teacher_forced(translation.source_ids, translation.target_ids)
    state = translator.model.decoder.init_state(translator.model.encoder(source, valid_lens), valid_lens)
    return state.enc_outputs[0, : int(state.enc_valid_lens[0])].cpu().double()


@torch.inference_mode()
def step_residuals(translator: Translator, translation: Translation, error: str = "") -> dict[str, float]:
    """How far weights are from what must be true: rows sum to 1, the formula, sum_j a_tj h_j is the decoder's context.

    Args:
        error: of `weights_by_formula`, whose weights these are then; else they are those that were recorded, and the
            context is summed part by part from what was recorded.
    """
    steps = decoder_steps(translator, translation)
    right = weights_by_formula(translator, translation, steps)
    if error:
        weights = weights_by_formula(translator, translation, steps, error)
        states = _source_states(translator, translation)
        contexts = weights[:, : len(states)] @ states
    else:
        weights = translation.trace["decoder.0.cross"].weights(head=0)[0]
        with record(values=True) as trace:
            translator.model(*translator.teacher_forced(translation.source_ids, translation.target_ids))
        contexts = contribution_sum(trace["decoder.0.cross"], None)[0]
    return {
        "rows": float((weights.sum(dim=-1) - 1).abs().max()),
        "formula": float((weights - right).abs().max()),
        "contexts": float((contexts - steps.contexts).abs().max()),
    }


def wrong_weights(translator: Translator, translation: Translation, error: str) -> Float[Tensor, "steps keys"]:
    """`weights_by_formula` with an error, "undivided" or "no-tanh"."""
    return weights_by_formula(translator, translation, decoder_steps(translator, translation), error)


@torch.inference_mode()
def erased_error(translator: Translator, translation: Translation) -> float:
    """max change of the logits when all source states but the last are erased: 0 for a decoder without attention."""
    source, target, valid_lens = translator.teacher_forced(translation.source_ids, translation.target_ids)
    model = translator.model
    outputs, hidden_state = model.encoder(source, valid_lens)
    last_only = torch.zeros_like(outputs)
    last_only[:, -1] = outputs[:, -1]
    whole, left = (
        model.decoder(target, model.decoder.init_state(Encoded(each, hidden_state), valid_lens))[0]
        for each in (outputs, last_only)
    )
    return float((whole - left).abs().max())


VOCAB_SIZE, EMBED_SIZE, NUM_HIDDENS, NUM_LAYERS = 10, 8, 16, 2
BATCH, NUM_STEPS = 4, 7


@torch.no_grad()
def decoder_shapes() -> dict[str, tuple[int, ...]]:
    """Shapes of the decoder's logits and of its state, for 4 sequences of 7 tokens from a vocabulary of 10."""
    sizes = VOCAB_SIZE, EMBED_SIZE, NUM_HIDDENS, NUM_LAYERS
    encoder, decoder = Seq2SeqEncoder(*sizes).eval(), Seq2SeqAttentionDecoder(*sizes).eval()
    X = torch.zeros(BATCH, NUM_STEPS, dtype=torch.long)
    output, state = decoder(X, decoder.init_state(encoder(X)))
    return {
        "output": tuple(output.shape),
        "keys": tuple(state.enc_outputs.shape),
        "hidden": tuple(state.hidden_state[0].shape),
    }
