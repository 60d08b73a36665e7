import importlib.util
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from scipy import optimize, special, stats

settings.register_profile("suite", deadline=None, max_examples=60, derandomize=True, database=None)
settings.register_profile("search", deadline=None, max_examples=2000, database=None)
settings.load_profile("suite")


def pytest_addoption(parser):
    parser.addoption("--torture", metavar="FILE", help="full sizes of the tests marked torture; results go to FILE")


def pytest_configure():
    """Take Ctrl-C again, here and in the commands that tests start: a shell's background job ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


SIGMA = {
    "logistic": special.expit,
    "probit": stats.norm.cdf,
    "clipped-linear": lambda z: np.clip(0.5 + z, 0.0, 1.0),
}


def _score_equation(theta, differences, weights, outcomes, ridge, link):
    probabilities = SIGMA[link.name](link.scale * (differences @ theta))
    return ridge * theta + (weights * (probabilities - outcomes)) @ differences


def _slow_estimate(differences, weights, outcomes, ridge, link):
    dimension = np.shape(differences)[1]
    arguments = (np.asarray(differences), np.asarray(weights), np.asarray(outcomes), ridge, link)
    solution = optimize.root(_score_equation, np.zeros(dimension), args=arguments, tol=1e-13)
    residual = _score_equation(solution.x, *arguments)
    assert np.abs(residual).max() < 1e-9 * (1 + np.sum(weights)), solution.message
    return solution.x


@pytest.fixture(scope="session")
def score_equation():
    """The left side of eq. (MLE), term by term: called with θ, φ (n, d), w, o, λ and the link."""
    return _score_equation


@pytest.fixture(scope="session")
def slow_estimate():
    """θ of eq. (MLE) from the whole history by a root finder of scipy."""
    return _slow_estimate


@pytest.fixture(scope="session")
def data():
    """The folder with recorded votes: FAIRDUEL_DATA, or shared/data beside the repository."""
    folder = Path(os.environ.get("FAIRDUEL_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"the recorded votes are not at {folder}: set FAIRDUEL_DATA")
    return folder


@pytest.fixture(scope="session")
def browser():
    """A real Chromium."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install '.[dev]'")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("there is no Chromium on PATH: install chromium or google-chrome")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def postgres():
    """The address of a PostgreSQL that runs while tests need it."""
    from helpers.clusters import cluster  # noqa: PLC0415  # needs the serve extra

    with cluster() as url:
        yield url


@pytest.fixture
def blank_figures(monkeypatch):
    """Leave the figures of reports empty: drawing them is most of what a small report costs."""
    monkeypatch.setattr("fairduel.report.page.image", lambda *_: b"<svg></svg>")


def pytest_collection_modifyitems(items):
    """Skip the tests marked torch where PyTorch is missing."""
    if importlib.util.find_spec("torch") is None:
        reason = "PyTorch is not installed: pip install '.[neural]'; `make test-neural` has an environment with it"
        for item in items:
            if "torch" in item.keywords:
                item.add_marker(pytest.mark.skip(reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Nothing is skipped in CI, but tests marked torch where other tests run too (they run in `make test-neural`)."""
    report = yield
    elsewhere = item.get_closest_marker("torch") and item.config.option.markexpr != "torch"
    if report.skipped and os.environ.get("CI") and not (elsewhere or hasattr(report, "wasxfail")):
        report.outcome = "failed"
        report.longrepr = f"skipped, which is not allowed in CI: {report.longrepr[-1]}"
    return report
