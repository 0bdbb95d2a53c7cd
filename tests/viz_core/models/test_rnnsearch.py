"""The model of Bahdanau, Cho and Bengio (2015) against its equations and torch's bidirectional GRU."""

import pytest
import torch
from torch import Tensor, nn

from viz_core.models import EncoderDecoder, RNNSearchDecoder, Seq2SeqAttentionDecoder, Seq2SeqEncoder
from viz_core.pretrained import build_translation_model
from viz_core.trace import record

VOCAB, EMBED, HIDDEN = 17, 5, 6
LENGTHS = torch.tensor([6, 1, 4])


def random_model(num_layers: int) -> EncoderDecoder:
    torch.manual_seed(num_layers)
    sizes = (VOCAB, EMBED, HIDDEN, num_layers)
    model = EncoderDecoder(Seq2SeqEncoder(*sizes, bidirectional=True), RNNSearchDecoder(*sizes)).eval().double()
    for parameter in model.requires_grad_(False).parameters():
        parameter.copy_(0.6 * torch.randn(parameter.shape))
    return model


def random_ids(*shape: int) -> Tensor:
    return torch.randint(3, VOCAB, shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize("num_layers", [1, 2])
def test_the_encoder_is_torchs_bidirectional_gru_over_the_valid_words(num_layers: int) -> None:
    encoder, source = random_model(num_layers).encoder, random_ids(3, 6)
    reference = nn.GRU(EMBED, HIDDEN, num_layers, batch_first=True, bidirectional=True).double()
    reference.load_state_dict(encoder.rnn.rnn.state_dict(), strict=True)
    found = encoder(source, LENGTHS)
    assert found.outputs.shape == (3, 6, 2 * HIDDEN)
    for row, length in enumerate(LENGTHS.tolist()):
        outputs, states = reference(encoder.embedding(source[row : row + 1, :length]))
        torch.testing.assert_close(found.outputs[row, :length], outputs[0])
        assert torch.equal(found.outputs[row, length:], torch.zeros(6 - length, 2 * HIDDEN, dtype=torch.float64))
        backward = states.unflatten(0, (num_layers, 2))[:, 1, 0]
        torch.testing.assert_close(found.hidden_state[:, row], backward)
        torch.testing.assert_close(backward[-1], outputs[0, 0, HIDDEN:])  # the state at the first word


def test_without_lengths_every_word_is_valid() -> None:
    encoder, source = random_model(1).encoder, random_ids(3, 6)
    for found, expected in zip(encoder(source), encoder(source, torch.tensor([6, 6, 6])), strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("num_layers", [1, 2])
def test_the_decoder_follows_the_papers_equations(num_layers: int) -> None:
    model, source, target = random_model(num_layers), random_ids(3, 6), random_ids(3, 4)
    decoder = model.decoder
    with record() as trace:
        logits = model(source, target, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
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


def test_a_config_names_the_architecture() -> None:
    sizes = {"vocab_size": VOCAB, "embed_size": EMBED, "num_hiddens": HIDDEN, "num_layers": 1}
    paper = build_translation_model({"architecture": "rnnsearch", **sizes})
    assert isinstance(paper.decoder, RNNSearchDecoder)
    assert paper.encoder.rnn.rnn.bidirectional
    assert paper.decoder.dense.weight is paper.encoder.embedding.weight
    same = {**sizes, "embed_size": HIDDEN}  # the book's shares its embedding only with states of its width
    book = build_translation_model({"architecture": "seq2seq-attention", **same})
    assert type(book.decoder) is Seq2SeqAttentionDecoder
    assert not book.encoder.rnn.rnn.bidirectional


def test_a_decoder_of_two_directions_refuses_an_encoder_of_one() -> None:
    sizes = (VOCAB, EMBED, HIDDEN, 1)
    model = EncoderDecoder(Seq2SeqEncoder(*sizes), RNNSearchDecoder(*sizes))
    with pytest.raises(ValueError, match="enc_outputs: expected"):
        model(random_ids(2, 3), random_ids(2, 2))


def test_without_a_key_for_the_end_each_row_attends_to_its_words() -> None:
    model, source, target = random_model(1), random_ids(3, 6), random_ids(3, 4)
    model.decoder.attend_to_end = False
    with record() as trace:
        logits = model(source, target, LENGTHS)
    weights = trace["decoder.0.cross"].weights()[:, 0]
    for row, length in enumerate([5, 1, 3]):  # a source of nothing but its end keeps it
        assert (weights[row, :, :length] > 0).all()
        assert not weights[row, :, length:].any()
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(3, 4))
    model.decoder.attend_to_end = True
    same = model.decoder.init_state(model.encoder(source, LENGTHS), torch.tensor([5, 1, 3]))
    torch.testing.assert_close(model.decoder(target, same)[0], logits)
    whole = model.decoder.init_state(model.encoder(source))
    assert whole.enc_valid_lens is None
    model.decoder.attend_to_end = False
    assert model.decoder.init_state(model.encoder(source)).enc_valid_lens.tolist() == [5, 5, 5]
