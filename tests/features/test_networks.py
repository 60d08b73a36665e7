"""Networks as feature maps: what they compute, against derivatives by hand, and one of a user's own."""

import re
from pathlib import Path

import numpy as np
import pytest

from fairduel import BadInputError
from fairduel.core import links
from fairduel.features import Chain, Network, Quadratic, TrainingVotes, as_map
from fairduel.features.network import tensor_potential
from fairduel.testing import check_map

pytestmark = pytest.mark.torch
ROWS = np.random.default_rng(0).uniform(-0.5, 0.5, (12, 3))
SMALL = {"width": 6, "steps": 40, "every": 5}


def forward(arrays, rows, part="now"):
    """The network written out: the inputs of its last layer, and its output."""
    for layer in (0, 2):
        rows = np.maximum(rows @ arrays[f"{part}:{layer}.weight"].T + arrays[f"{part}:{layer}.bias"], 0.0)
    return rows, (rows @ arrays[f"{part}:4.weight"].T + arrays[f"{part}:4.bias"])[:, 0]


def won(rows, weights=None):
    """Votes in which the first half of the rows beat the second."""
    half = len(rows) // 2
    return TrainingVotes(rows[:half], rows[half:], np.ones(half) if weights is None else weights, np.ones(half))


@pytest.mark.parametrize("features", ["last-layer", "tangent"])
def test_a_network_passes_every_check_of_a_map(features):
    check_map(Network(features=features, components=10, **SMALL), dimension=3)


def test_features_are_the_inputs_of_the_last_layer_and_rewards_the_change_of_the_output():
    network = Network(**SMALL).fit(3, seed=4).trained(won(ROWS), link=links.LOGISTIC, ridge=0.1)
    hidden, now = forward(network.arrays, ROWS)
    _, start = forward(network.arrays, ROWS, "start")
    np.testing.assert_allclose(network.rewards(ROWS), now - start, atol=1e-5)
    assert np.abs(now - start).max() > 0.1
    expected = (hidden - network.arrays["centre"]) @ network.arrays["projection"]
    expected /= np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1.0)
    np.testing.assert_allclose(network(ROWS), expected, atol=1e-5)


def test_tangent_features_have_the_products_of_the_gradients():
    network = Network(features="tangent", components=200, width=6).fit(3, ROWS, seed=1)
    step, weights = 1e-4, [name for name in network.arrays if name.startswith("now:")]
    gradients = []
    for name in weights:
        for place in np.ndindex(network.arrays[name].shape):
            sides = []
            for sign in (1.0, -1.0):
                moved = {key: array.copy() for key, array in network.arrays.items()}
                moved[name][place] += sign * step
                sides.append(forward(moved, ROWS)[1])
            gradients.append((sides[0] - sides[1]) / (2 * step))
    centred = np.array(gradients).T
    centred -= centred.mean(axis=0)
    expected = centred @ centred.T / (2 * (centred**2).sum() / len(ROWS))
    features = network(ROWS)
    is_short = np.linalg.norm(features, axis=1) < 0.999  # longer ones are shortened
    assert is_short.sum() >= 6
    np.testing.assert_allclose(
        (features @ features.T)[is_short][:, is_short], expected[is_short][:, is_short], atol=1e-4
    )


@pytest.mark.parametrize("link", ["logistic", "probit", "clipped-linear", links.Link("logistic", scale=2.0)], ids=str)
def test_the_loss_is_that_of_the_estimate(link):
    import torch  # noqa: PLC0415

    sigma = links.as_link(link)
    leads = np.linspace(-2.0, 2.0, 41)
    kind = sigma.numbers
    expected = [links.potential(kind.kind, kind.scale, lead) for lead in leads]
    np.testing.assert_allclose(tensor_potential(sigma)(torch.as_tensor(leads)).numpy(), expected, atol=1e-9)


def test_a_strong_pull_holds_the_weights_at_the_start_and_a_weight_of_0_silences_a_vote():
    def size(**settings):
        weights = settings.pop("weights", None)
        network = Network(**SMALL | settings).fit(3).trained(won(ROWS, weights), link=links.LOGISTIC, ridge=1.0)
        return np.abs(network.rewards(ROWS)).max()

    assert size(pull=1000.0) < 0.1 * size(pull=0.01)
    assert size(weights=np.zeros(6)) == 0.0


def test_training_leaves_pytorch_as_it_was():
    import torch  # noqa: PLC0415

    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    Network(**SMALL).fit(3).trained(won(ROWS), link=links.LOGISTIC, ridge=0.1)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_num_threads() == threads


class Waves(Network):
    """A user's network: one layer of sines."""

    def module(self, dimension):
        import torch  # noqa: PLC0415

        class Sine(torch.nn.Module):
            def forward(self, x):
                return torch.sin(3.0 * x)

        return torch.nn.Sequential(torch.nn.Linear(dimension, 16), Sine(), torch.nn.Linear(16, 1))


class Batched(Network):
    def module(self, dimension):
        import torch  # noqa: PLC0415

        class Centred(torch.nn.Module):
            def forward(self, x):
                return x - x.mean(dim=0)

        return torch.nn.Sequential(torch.nn.Linear(dimension, 4), Centred(), torch.nn.Linear(4, 1))


class Wide(Network):
    def module(self, dimension):
        import torch  # noqa: PLC0415

        return torch.nn.Linear(dimension, 2)


def test_a_users_network_passes_and_wrong_ones_are_noticed():
    check_map(Waves(steps=20), dimension=3)
    with pytest.raises(AssertionError, match="alone: an action's features depend on the other actions"):
        check_map(Batched(steps=5), dimension=3)
    with pytest.raises(BadInputError, match="so it has no last layer"):
        check_map(Wide(), dimension=3)
    with pytest.raises(BadInputError, match="one number per action"):
        Wide(features="tangent").fit(3)


def test_the_network_of_the_documentation_passes():
    page = (Path(__file__).parents[2] / "docs" / "agents" / "neural.md").read_text(encoding="utf-8")
    [block] = re.findall(r"^```py\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    exec(block, {"__name__": "the_page"})


def test_its_name_and_its_settings_are_read_back():
    assert str(as_map("neural")) == "neural"
    assert str(Network(width=20)) == "Network(width=20)"
    with pytest.raises(BadInputError, match="cannot be part of a chain"):
        Chain(Quadratic(), Network())
    with pytest.raises(BadInputError, match="features"):
        Network(features="first-layer")
