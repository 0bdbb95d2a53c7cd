"""The recurrent models against the equations of their papers, row by row and step by step, in float64."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from viz_core.models import EncoderDecoder, RNNSearchDecoder, Seq2SeqAttentionDecoder, Seq2SeqDecoder, Seq2SeqEncoder
from viz_core.trace import record

VOCAB, EMBED, HIDDEN, LAYERS = 17, 5, 6, 2
SIZES = (VOCAB, EMBED, HIDDEN, LAYERS)
DECODERS = [Seq2SeqAttentionDecoder, Seq2SeqDecoder]  # the book's
EVERY_DECODER = [*DECODERS, RNNSearchDecoder]


def random_model(decoder: type[nn.Module], scale: float = 1.0, num_layers: int = LAYERS) -> EncoderDecoder:
    torch.manual_seed(3)
    sizes = (*SIZES[:3], num_layers, 0.0, scale)
    encoder = Seq2SeqEncoder(*sizes, bidirectional=decoder is RNNSearchDecoder)
    model = EncoderDecoder(encoder, decoder(*sizes)).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.copy_(0.6 * torch.randn(parameter.shape))
    return model


def random_ids(*shape: int) -> Tensor:
    return torch.randint(3, VOCAB, shape, generator=torch.Generator().manual_seed(sum(shape)))


class Reference:
    """The same computation from a state dict alone, one sentence at a time, without torch's GRU."""

    def __init__(self, parameters: dict[str, Tensor]) -> None:
        self.p = {name: tensor.double() for name, tensor in parameters.items()}

    def gru_step(self, prefix: str, x: Tensor, states: list[Tensor]) -> list[Tensor]:
        """Cho 2014 as torch orders it: r, z, n; h' = (1 - z) n + z h."""
        new = []
        for layer, h in enumerate(states):
            W, U = self.p[f"{prefix}.weight_ih_l{layer}"], self.p[f"{prefix}.weight_hh_l{layer}"]
            b, c = self.p[f"{prefix}.bias_ih_l{layer}"], self.p[f"{prefix}.bias_hh_l{layer}"]
            (xr, xz, xn), (hr, hz, hn) = (W @ x + b).chunk(3), (U @ h + c).chunk(3)
            r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
            n = torch.tanh(xn + r * hn)
            x = (1 - z) * n + z * h
            new.append(x)
        return new

    def encode(self, ids: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        states, outputs = [torch.zeros(HIDDEN, dtype=torch.float64)] * LAYERS, []
        for token in ids:
            states = self.gru_step("encoder.rnn.rnn", self.p["encoder.embedding.weight"][token], states)
            outputs.append(states[-1])
        return outputs, states

    def additive_weights(self, query: Tensor, keys: list[Tensor]) -> Tensor:
        W_q, W_k, w_v = (self.p[f"decoder.attention.{name}.weight"] for name in ("W_q", "W_k", "w_v"))
        return torch.softmax(torch.stack([w_v[0] @ torch.tanh(W_q @ query + W_k @ key) for key in keys]), dim=0)

    def logits(self, source: Tensor, target: Tensor, attends: bool) -> tuple[Tensor, Tensor]:
        outputs, states = self.encode(source)
        summary = states[-1]
        rows, maps = [], []
        for token in target:
            x = self.p["decoder.embedding.weight"][token]
            if attends:
                maps.append(self.additive_weights(states[-1], outputs))
                context = sum(w * h for w, h in zip(maps[-1], outputs, strict=True))
                states = self.gru_step("decoder.rnn", torch.cat([context, x]), states)
            else:
                states = self.gru_step("decoder.rnn.rnn", torch.cat([x, summary]), states)
            rows.append(self.p["decoder.dense.weight"] @ states[-1] + self.p["decoder.dense.bias"])
        return torch.stack(rows), torch.stack(maps) if maps else torch.empty(0)


@pytest.mark.parametrize("decoder", DECODERS)
def test_parity_with_the_equations_row_by_row(decoder: type[nn.Module]) -> None:
    model = random_model(decoder)
    source, target, lengths = random_ids(3, 6), random_ids(3, 4), torch.tensor([6, 1, 4])
    with record() as trace:
        logits = model(source, target, lengths)
    reference = Reference(model.state_dict())
    attends = decoder is Seq2SeqAttentionDecoder
    assert len(reference.p) == (23 if attends else 20), "parameters that the equations do not name"
    assert trace.sites == (("decoder.0.cross",) if attends else ())
    for row, length in enumerate(lengths.tolist()):
        expected, maps = reference.logits(source[row, :length], target[row], attends)
        torch.testing.assert_close(logits[row].double(), expected, atol=2e-5, rtol=0)
        if attends:
            weights = trace["decoder.0.cross"].weights()[row, 0]
            torch.testing.assert_close(weights[:, :length].double(), maps, atol=1e-6, rtol=0)
            assert torch.equal(weights[:, length:], torch.zeros(4, 6 - length))


@pytest.mark.parametrize("decoder", EVERY_DECODER)
@settings(max_examples=20)
@given(data=st.data(), steps=st.integers(1, 5))
def test_steps_one_by_one_equal_all_at_once(decoder: type[nn.Module], data: st.DataObject, steps: int) -> None:
    model = random_model(decoder)
    keys = data.draw(st.integers(1, 5))
    lengths = torch.tensor(data.draw(st.lists(st.integers(1, keys), min_size=2, max_size=2)))
    source, target = random_ids(2, keys), random_ids(2, steps)
    state = model.decoder.init_state(model.encoder(source, lengths), lengths)
    rows = []
    for step in range(steps):
        logits, state = model.decoder(target[:, step : step + 1], state)
        rows.append(logits)
    torch.testing.assert_close(torch.cat(rows, dim=1), model(source, target, lengths), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_nothing_is_read_of_an_empty_source_row(bidirectional: bool) -> None:
    encoder = Seq2SeqEncoder(*SIZES, bidirectional=bidirectional).eval()
    ids, lengths = random_ids(3, 4), torch.tensor([0, 4, 2])
    outputs, states = encoder(ids, lengths)
    assert not outputs[0].any()
    assert not states[:, 0].any()
    alone = encoder(ids[1:], lengths[1:])
    torch.testing.assert_close((outputs[1:], states[:, 1:]), tuple(alone))


@pytest.mark.parametrize("decoder", EVERY_DECODER)
def test_select_reorders_and_repeats_rows(decoder: type[nn.Module]) -> None:
    model = random_model(decoder)
    source, target, lengths = random_ids(3, 5), random_ids(3, 2), torch.tensor([5, 2, 3])
    _, state = model.decoder(target, model.decoder.init_state(model.encoder(source, lengths), lengths))
    rows = torch.tensor([2, 0, 0])
    picked, _ = model.decoder(target[rows, -1:], state.select(rows))
    every, _ = model.decoder(target[:, -1:], state)
    torch.testing.assert_close(picked, every[rows])


NUM_WORDS = torch.tensor([6, 1, 4])


def random_rnnsearch(num_layers: int) -> EncoderDecoder:
    return random_model(RNNSearchDecoder, num_layers=num_layers).double()


@pytest.mark.parametrize("num_layers", [1, 2])
def test_the_encoder_is_torchs_bidirectional_gru_over_the_valid_words(num_layers: int) -> None:
    encoder, source = random_rnnsearch(num_layers).encoder, random_ids(3, 6)
    reference = nn.GRU(EMBED, HIDDEN, num_layers, batch_first=True, bidirectional=True).double()
    reference.load_state_dict(encoder.rnn.rnn.state_dict(), strict=True)
    found = encoder(source, NUM_WORDS)
    assert found.outputs.shape == (3, 6, 2 * HIDDEN)
    for row, length in enumerate(NUM_WORDS.tolist()):
        outputs, states = reference(encoder.embedding(source[row : row + 1, :length]))
        torch.testing.assert_close(found.outputs[row, :length], outputs[0])
        assert torch.equal(found.outputs[row, length:], torch.zeros(6 - length, 2 * HIDDEN, dtype=torch.float64))
        backward = states.unflatten(0, (num_layers, 2))[:, 1, 0]
        torch.testing.assert_close(found.hidden_state[:, row], backward)
        torch.testing.assert_close(backward[-1], outputs[0, 0, HIDDEN:])  # the state at the first word


@pytest.mark.parametrize("num_layers", [1, 2])
def test_the_decoder_follows_the_papers_equations(num_layers: int) -> None:
    model, source, target = random_rnnsearch(num_layers), random_ids(3, 6), random_ids(3, 4)
    decoder = model.decoder
    with record() as trace:
        logits = model(source, target, NUM_WORDS)
    for row, length in enumerate(NUM_WORDS.tolist()):
        keys, backward = model.encoder(source[row : row + 1, :length])
        states = torch.tanh(backward @ decoder.W_s.weight.T + decoder.W_s.bias)
        for step, token in enumerate(target[row]):
            query = states[-1, 0]
            projected = query @ decoder.attention.W_q.weight.T + keys[0] @ decoder.attention.W_k.weight.T
            weights = torch.softmax(torch.tanh(projected) @ decoder.attention.w_v.weight[0], dim=0)
            context, word = weights @ keys[0], decoder.embedding.weight[token]
            _, states = decoder.rnn(torch.cat([context, word])[None, None], states)
            z = decoder.W_o.weight @ torch.cat([states[-1, 0], word, context]) + decoder.W_o.bias
            t = torch.maximum(z[0::2], z[1::2])
            expected = decoder.dense.weight @ t + decoder.dense.bias
            torch.testing.assert_close(logits[row, step], expected, atol=2e-6, rtol=0)  # softmax in float32
            recorded = trace["decoder.0.cross"].weights()[row, 0, step]
            torch.testing.assert_close(recorded[:length].double(), weights, atol=1e-6, rtol=0)
            assert not recorded[length:].any()


def test_without_a_key_for_the_end_each_row_attends_to_its_words() -> None:
    model, source, target = random_rnnsearch(1), random_ids(3, 6), random_ids(3, 4)
    model.decoder.attend_to_end = False
    with record() as trace:
        model(source, target, NUM_WORDS)
    weights = trace["decoder.0.cross"].weights()[:, 0]
    for row, length in enumerate([5, 1, 3]):  # a source of nothing but its end keeps it
        assert (weights[row, :, :length] > 0).all()
        assert not weights[row, :, length:].any()
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(3, 4))
