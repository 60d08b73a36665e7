"""Networks: features that are learned from the votes. They need PyTorch, the ``neural`` extra.

PyTorch is imported when a network is first used, never with this module.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Literal, Self, get_args

import numpy as np

from fairduel.checks import at_least_zero, ensure, integer, needs_extra, positive
from fairduel.core.links import Link
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError, unknown_name
from fairduel.features.feature_map import FeatureMap, TrainingVotes
from fairduel.features.kernels import within_unit_ball

Layer = Literal["last-layer", "tangent"]
_MOST_REFERENCES = 256  # actions that decide how features are scaled
_SPREAD = 0.5  # the standard deviation of a bias at the start
Tensor = Any  # of PyTorch, which need not be installed


def pytorch() -> Any:
    """Import PyTorch, or say which extra has it."""
    with needs_extra("neural"):
        import torch  # noqa: PLC0415
    return torch


@contextmanager
def one_torch_thread(torch: Any) -> Iterator[None]:
    """Compute on one thread: small networks gain nothing from more, and sums keep their order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class Network(FeatureMap):
    """A network that maps an action to a reward, and the features that it learns from the votes.

    Its reward is its output minus its output before training, so it is 0 at the start. Agents refit it as votes arrive,
    and then compute every weight and width again, in its new features. To use a network of your own, derive from this
    class and write :meth:`module`; :func:`~fairduel.testing.check_map` checks it.

    Args:
        width: The number of units in each hidden layer.
        depth: The number of hidden layers.
        features: ``"last-layer"``: the inputs of the last layer. ``"tangent"``: the gradients of the output by all
            weights, along their largest principal components.
        components: How many of these.
        pull: The ridge that pulls the weights back to the start, in units of the agent's λ. With a weak one, early lies
            shape the features.
        steps: The number of Adam steps of a refit, which begins at the last weights.
        rate: Adam's learning rate.
        batch: The number of votes in a step.
        every: The fewest votes between two refits; from ten times as many on, it is a tenth of all votes.
        device: Where PyTorch computes, such as ``"cpu"`` or ``"cuda"``.

    >>> Network(width=20)
    Network(width=20)
    """

    name = "neural"
    learns = True

    def __init__(
        self,
        *,
        width: int = 50,
        depth: int = 2,
        features: Layer = "last-layer",
        components: int = 48,
        pull: float = 4.0,
        steps: int = 50,
        rate: float = 0.01,
        batch: int = 256,
        every: int = 25,
        device: str = "cpu",
    ) -> None:
        if features not in get_args(Layer):
            raise unknown_name("features", str(features), get_args(Layer))
        super().__init__(
            width=integer("width", width, least=1),
            depth=integer("depth", depth, least=1),
            features=features,
            components=integer("components", components, least=1),
            pull=at_least_zero("pull", pull),
            steps=integer("steps", steps, least=1),
            rate=positive("rate", rate),
            batch=integer("batch", batch, least=1),
            every=integer("every", every, least=1),
            device=str(device),
        )
        self.every = self.settings["every"]
        self._module: Any = None
        self._start: dict[str, Tensor] = {}
        self._last: Any = None

    def __repr__(self) -> str:
        kind = type(self)
        usual = kind().settings
        chosen = [f"{name}={value!r}" for name, value in self.settings.items() if value != usual.get(name)]
        return f"{kind.__name__}({', '.join(chosen)})"

    def __str__(self) -> str:
        return self.name if repr(self) == "Network()" else repr(self)

    # ------------------------------------------------------------------ for networks of your own

    def module(self, dimension: int) -> Any:
        """Return a ``torch.nn.Module`` that maps actions (n, ``dimension``) to outputs (n,) or (n, 1).

        PyTorch's random stream is seeded when it is called. An action's output must not depend on other actions.
        """
        nn = pytorch().nn
        sizes = [dimension, *[self.settings["width"]] * self.settings["depth"]]
        layers = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())]
        linear = [*layers[::2], nn.Linear(sizes[-1], 1)]
        for layer in linear:
            nn.init.normal_(layer.weight, std=math.sqrt((1.0 if layer is linear[-1] else 2.0) / layer.in_features))
            nn.init.normal_(layer.bias, std=_SPREAD)
        return nn.Sequential(*layers, linear[-1])

    # ------------------------------------------------------------------ as a feature map

    def learn(self, actions: Matrix, rng: np.random.Generator, *, are_known: bool) -> None:  # noqa: ARG002
        """Draw the weights, and centre and scale the features by these actions."""
        self._make(actions.shape[1], seed=int(rng.integers(2**31)))
        self._refer_to(actions)

    def mapped(self, actions: Matrix) -> Matrix:
        """Return the features of ``actions`` (K, d), shape (K, m)."""
        return within_unit_ball((self._raw(actions) - self.arrays["centre"]) @ self.arrays["projection"])

    def trained(self, ballots: TrainingVotes, *, link: Link, ridge: float, actions: Matrix | None = None) -> Self:
        """Return this network after a refit, which begins at these weights.

        Some steps of Adam reduce Σ_i w_i [∫σ(z_i) − o_i z_i] + (λ·pull/2)‖W − W₀‖², where z_i is the lead of the first
        action's reward and W₀ are the weights at the start: eq. (MLE) for a network.

        Args:
            ballots: The votes.
            link: σ.
            ridge: λ.
            actions: What to centre and scale the features by, shape (n, d); ``None`` leaves that as it is.
        """
        new = self.unfitted()
        new.dimension, new.size, new.reference = self.dimension, self.size, self.reference
        new.arrays = dict(self.arrays)
        new._take_up(ballots, link, ridge, actions)  # noqa: SLF001
        return new

    def _take_up(self, ballots: TrainingVotes, link: Link, ridge: float, actions: Matrix | None) -> None:
        self._load()
        self._fit(ballots, link, ridge)
        if actions is not None:
            self._refer_to(actions)
            self.settle(self.dimension, actions)

    def rewards(self, actions: Matrix) -> Vector:
        """The network's own rewards of ``actions`` (K, d): its output minus that at the start, shape (K,)."""
        inputs = self._tensor(actions)
        with pytorch().no_grad():
            change = self._output(inputs) - self._output(inputs, self._start)
        return np.asarray(change.double().cpu())

    def _refer_to(self, actions: Matrix) -> None:
        if len(actions) > _MOST_REFERENCES:
            actions = actions[np.random.default_rng(0).choice(len(actions), _MOST_REFERENCES, replace=False)]
        raw = self._raw(actions)
        self.arrays["centre"] = raw.mean(axis=0)
        centred = raw - self.arrays["centre"]
        if self.settings["features"] == "last-layer":
            projection = np.eye(raw.shape[1])
        else:
            projection = np.linalg.svd(centred, full_matrices=False)[2][: self.settings["components"]].T
        # The mean square of a feature vector is ½, so that of a difference of two is 1.
        length = math.sqrt(2.0 * float((centred**2).sum()) / len(raw))
        self.arrays["projection"] = projection / (length or 1.0)

    # ------------------------------------------------------------------ training

    def _fit(self, ballots: TrainingVotes, link: Link, ridge: float) -> None:
        torch, settings = pytorch(), self.settings
        first, second, weights, shares = (self._tensor(part) for part in ballots)
        area, count = tensor_potential(link), len(ballots.weights)
        rng = np.random.default_rng([count, settings["batch"]])
        with one_torch_thread(torch):
            with torch.no_grad():
                before = self._output(first, self._start) - self._output(second, self._start)
            optimiser = torch.optim.Adam(self._module.parameters(), lr=settings["rate"])
            for _ in range(settings["steps"]):
                rows = torch.as_tensor(rng.permutation(count)[: settings["batch"]], device=settings["device"])
                out = self._output(torch.cat([first[rows], second[rows]]))
                lead = out[: len(rows)] - out[len(rows) :] - before[rows]
                losses = area(lead) - shares[rows] * lead
                moved = sum(((weight - self._start[name]) ** 2).sum() for name, weight in self._weights())
                loss = 0.5 * settings["pull"] * ridge / count * moved + (weights[rows] * losses).mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        self._store()

    # ------------------------------------------------------------------ the module

    def _make(self, dimension: int, seed: int) -> None:
        """Make the module with weights drawn from this seed."""
        torch = pytorch()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._module = self.module(dimension).to(self.settings["device"]).eval()
        if not list(self._weights()):
            raise BadInputError(f"the network {type(self).__name__} has no weights to train.")
        linear = torch.nn.Linear
        last = [part for part in self._module.modules() if isinstance(part, linear) and part.out_features == 1]
        if self.settings["features"] == "last-layer" and not last:
            raise BadInputError(
                f"the network {type(self).__name__} has no torch.nn.Linear with one output, so it has no last layer; "
                "use features='tangent'."
            )
        self._last = last[-1] if last else None
        self._start = {name: weight.detach().clone() for name, weight in self._weights()}
        self._store()

    def _weights(self) -> Iterator[tuple[str, Tensor]]:
        return self._module.named_parameters()  # type: ignore[no-any-return]

    def _store(self) -> None:
        """Keep the weights as arrays, to be saved."""
        for part, weights in (("now", dict(self._weights())), ("start", self._start)):
            for name, weight in weights.items():
                self.arrays[f"{part}:{name}"] = weight.detach().double().cpu().numpy().copy()

    def _load(self) -> None:
        """Make the module with the weights in the arrays."""
        arrays, self.arrays = self.arrays, {}
        self._make(self.dimension, seed=0)
        own, self.arrays = {name: array.shape for name, array in self.arrays.items()}, arrays
        for name, shape in own.items():
            ensure(name in arrays and arrays[name].shape == shape, f"the network's weights {name} have another shape")
        with pytorch().no_grad():
            for name, weight in self._weights():
                weight.copy_(self._tensor(arrays[f"now:{name}"]))
                self._start[name] = self._tensor(arrays[f"start:{name}"])

    def restore(self, state: Mapping[str, Any]) -> None:
        """Load what :meth:`state` returned, after checking it."""
        super().restore(state)
        self._load()
        ensure({"centre", "projection"} <= self.arrays.keys(), "the network's features are incomplete")
        rows = self._raw(np.zeros((1, self.dimension))).shape[1]
        fits = self.arrays["centre"].shape == (rows,) and self.arrays["projection"].shape == (rows, self.size)
        ensure(fits, "the network's features have another shape")

    def _tensor(self, array: Any) -> Tensor:
        kind = next(weight.dtype for _, weight in self._weights())
        return pytorch().as_tensor(np.array(array), dtype=kind, device=self.settings["device"])

    def _output(self, actions: Tensor, weights: Mapping[str, Tensor] | None = None) -> Tensor:
        """The module's output (n,) with these weights, or with its own."""
        module = self._module
        out = module(actions) if weights is None else pytorch().func.functional_call(module, weights, (actions,))
        if out.numel() != len(actions):
            raise BadInputError(f"a network must return one number per action, not shape {tuple(out.shape)}.")
        return out.reshape(len(actions))

    def _raw(self, actions: Matrix) -> Matrix:
        """Features before they are centred and scaled, shape (n, p)."""
        torch, inputs = pytorch(), self._tensor(actions)
        if self.settings["features"] == "tangent":
            weights = {name: weight.detach() for name, weight in self._weights()}
            gradient = torch.func.grad(lambda values, row: self._output(row[None], values)[0])
            each = torch.func.vmap(gradient, in_dims=(None, 0))(weights, inputs)
            found = torch.cat([part.reshape(len(inputs), -1) for part in each.values()], dim=1)
        else:
            seen: list[Tensor] = []
            hook = self._last.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
            with torch.no_grad():
                self._output(inputs)
            hook.remove()
            found = seen[-1].reshape(len(inputs), -1)
        return np.asarray(found.detach().double().cpu())


def tensor_potential(link: Link) -> Callable[[Tensor], Tensor]:
    """∫σ as a function of tensors: with −oz added, the loss whose stationary point is eq. (MLE)."""
    torch = pytorch()

    def of(lead: Tensor) -> Tensor:
        z = link.scale * lead
        if link.name == "logistic":
            area = torch.nn.functional.softplus(z)
        elif link.name == "probit":
            area = z * torch.special.ndtr(z) + torch.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        else:
            area = 0.5 * torch.clamp(z + 0.5, 0.0, 1.0) ** 2 + torch.clamp(z - 0.5, min=0.0)
        return area / link.scale

    return of
