"""Contacts of proteins from attention: those of transformers on a random model, a regression that finds its head."""

import pytest
import torch
from torch import Tensor
from transformers import EsmConfig, EsmModel

from viz_core.hub import instrument
from viz_core.maps.contacts import ContactRegression, average_product_correction, contact_features, fit_contacts
from viz_core.trace import Trace, record

CLS, PAD, EOS = 0, 1, 2
LENGTHS = (12, 9)


@pytest.fixture(scope="module")
def model() -> EsmModel:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 24}
    config = EsmConfig(vocab_size=33, pad_token_id=PAD, position_embedding_type="rotary", token_dropout=True, **sizes)
    config.mask_token_id = 32
    return EsmModel(config, add_pooling_layer=False).eval()


@pytest.fixture(scope="module")
def batch() -> tuple[Tensor, Tensor]:
    tokens = torch.full((2, 14), PAD)
    for row, length in enumerate(LENGTHS):
        residues = torch.randint(4, 24, (length,), generator=torch.Generator().manual_seed(row))
        tokens[row, : length + 2] = torch.cat([torch.tensor([CLS]), residues, torch.tensor([EOS])])
    return tokens, (tokens != PAD).long()


@pytest.fixture(scope="module")
def trace(model: EsmModel, batch: tuple[Tensor, Tensor]) -> Trace:
    instrument(model)
    with record() as trace, torch.no_grad():
        model(batch[0], attention_mask=batch[1])
    return trace


@pytest.mark.parametrize("row", [0, 1])
def test_contacts_are_those_of_transformers(
    model: EsmModel, batch: tuple[Tensor, Tensor], trace: Trace, row: int
) -> None:
    head = model.contact_head.regression
    ours = ContactRegression(head.weight[0].detach(), head.bias.item()).probabilities(contact_features(trace, row))
    model.set_attn_implementation("eager")
    with torch.no_grad():
        expected = model.predict_contacts(*(each[row : row + 1, : LENGTHS[row] + 2] for each in batch))[0]
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(ours, ours.T)


def test_the_correction_by_hand() -> None:
    """Sums 4 and 6 of rows and of columns, 10 of all."""
    maps = torch.tensor([[1.0, 3.0], [3.0, 3.0]])
    expected = torch.tensor([[1 - 1.6, 3 - 2.4], [3 - 2.4, 3 - 3.6]])
    torch.testing.assert_close(average_product_correction(maps), expected)
    torch.testing.assert_close(average_product_correction(torch.ones(3, 3)), torch.zeros(3, 3))


def proteins(seed: int = 0) -> tuple[list[Tensor], list[Tensor]]:
    """Two proteins whose head 2 of 5 is their contacts and noise; the others are noise."""
    draw = torch.Generator().manual_seed(seed)
    features, contacts = [], []
    for n in (30, 40):
        touches = (torch.rand(n, n, generator=draw) < 0.15).triu(1)
        touches = touches | touches.T
        maps = 0.01 * torch.randn(5, n, n, generator=draw).double()
        maps[2] += 0.02 * touches
        features.append(maps + maps.mT)
        contacts.append(touches)
    return features, contacts


def test_the_regression_finds_the_head() -> None:
    features, contacts = proteins()
    found = fit_contacts(features[:1], contacts[:1], penalty=0.5)
    assert found.weights.argmax() == 2
    assert found.weights[2] > 10 * found.weights[[0, 1, 3, 4]].abs().max()
    far = torch.ones(40, 40).triu(6).bool()
    likely = found.probabilities(features[1])[far].topk(40).indices
    assert contacts[1][far][likely].double().mean() > 0.8  # of the 40 likeliest pairs of the other protein
    assert not fit_contacts(features, contacts, penalty=1e4).weights.any()


@pytest.mark.parametrize("penalty", [0.05, 0.5])
def test_at_the_minimum_no_weight_can_gain(penalty: float) -> None:
    """The gradient of the cross-entropy is -penalty * sign(w), at most the penalty where w = 0, and 0 for the bias."""
    features, contacts = proteins(1)
    found = fit_contacts(features, contacts, penalty=penalty, separation=3)
    pairs = [torch.ones(each.shape).triu(3).bool() for each in contacts]
    errors = torch.cat(
        [found.probabilities(f)[p] - c[p].double() for f, c, p in zip(features, contacts, pairs, strict=True)]
    )
    gradient = torch.cat([f[:, p] for f, p in zip(features, pairs, strict=True)], dim=1) @ errors
    assert abs(float(errors.sum())) < 1e-4
    assert (gradient.abs() < penalty + 1e-4).all()
    used = found.weights != 0
    torch.testing.assert_close(gradient[used], -penalty * found.weights[used].sign(), rtol=0, atol=1e-4)


@pytest.mark.usefixtures("shapes_unchecked")
def test_what_cannot_be_fitted_is_refused(trace: Trace) -> None:
    features, contacts = proteins()
    with pytest.raises(ValueError, match="penalty"):
        fit_contacts(features, contacts, penalty=0.0)
    with pytest.raises(ValueError, match="each protein's features"):
        fit_contacts(features, contacts[:1], penalty=1.0)
    with pytest.raises(ValueError, match="got 0 of"):
        fit_contacts(features[:1], [torch.zeros(30, 30).bool()], penalty=1.0)
    with pytest.raises(ValueError, match="got none"):
        contact_features(trace, residues=slice(5, 5))
