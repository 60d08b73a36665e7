import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairduel import BadInputError
from fairduel.action_sets import checked_actions, hypercube

GOOD = [[0.6, 0.8], [0.0, -1.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    "actions",
    [
        GOOD,
        tuple(map(tuple, GOOD)),
        np.array(GOOD),
        np.asfortranarray(GOOD),
        np.array(GOOD).repeat(2, axis=0)[::2],
        np.array([[1, 0], [0, 1]]),
        np.array(GOOD, dtype=np.float32) * np.float32(0.99),
    ],
    ids=["list", "tuple", "array", "fortran", "strided", "integers", "float32"],
)
def test_any_table_of_numbers_becomes_contiguous_floats(actions):
    array = checked_actions(actions, 2)
    assert array.dtype == np.float64
    assert array.flags.c_contiguous
    np.testing.assert_array_equal(array, np.asarray(actions, dtype=np.float64))


def test_a_read_only_table_is_accepted_and_left_alone():
    table = np.array(GOOD)
    table.flags.writeable = False
    np.testing.assert_array_equal(checked_actions(table, 2), GOOD)
    assert not table.flags.writeable


@pytest.mark.parametrize(
    ("actions", "reason"),
    [
        ([[0.1, 0.2], [math.nan, 0.0]], "action 1 .*NaN"),
        ([[math.inf, 0.0], [0.0, 0.0]], "action 0 .*infinite"),
        ([[0.1, 0.2], [0.0, -math.inf]], "action 1 .*infinite"),
        ([[0.1, 0.2], [0.0, 0.0], [0.8, 0.8]], "action 2 has norm 1.13"),
        ([[1e100, 0.0], [0.0, 0.0]], "action 0 has norm 1e.100"),
        ([[0.1, 0.2, 0.3], [0.1, 0.2, 0.3]], r"shape \(K, 2\)"),
        ([0.1, 0.2], r"shape \(K, 2\)"),
        (0.5, r"shape \(K, 2\)"),
        (np.zeros((2, 2, 2)), r"shape \(K, 2\)"),
        ([], r"shape \(K, 2\)"),
        (np.zeros((0, 2)), "at least two actions, not 0"),
        ([[0.1, 0.2]], "at least two actions, not 1"),
        ([["red", "green"], ["blue", "red"]], "numbers"),
        ("actions", "numbers"),
        ([[0.1, 0.2], [0.3]], "numbers"),
        ([[0.1, 0.2], [{}, 0.3]], "numbers"),
        (None, "numbers"),
    ],
)
def test_a_bad_table_is_refused_with_its_reason(actions, reason):
    with pytest.raises(BadInputError, match=reason):
        checked_actions(actions, 2)


@given(st.floats(1.0 + 1e-8, 1e3), st.integers(1, 6))
def test_a_norm_over_one_is_refused_and_rounding_over_one_is_not(norm, dimension):
    row = np.full(dimension, 1.0 / math.sqrt(dimension))
    checked_actions([row * (1 + 1e-12), 0 * row], dimension)
    with pytest.raises(BadInputError, match="at most 1"):
        checked_actions([0 * row, row * norm], dimension)


@pytest.mark.parametrize("dimension", range(1, 9))
def test_hypercube_has_every_vertex_once_on_the_unit_sphere(dimension):
    vertices = hypercube(dimension)
    assert vertices.shape == (2**dimension, dimension)
    np.testing.assert_allclose(np.linalg.norm(vertices, axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(np.abs(vertices), 1 / math.sqrt(dimension), rtol=1e-15)
    assert len(np.unique(vertices, axis=0)) == 2**dimension
    checked_actions(vertices, dimension)


@pytest.mark.parametrize(("dimension", "kept"), [(8, np.float64), (64, np.float32)])
def test_single_precision_is_kept_in_high_dimension(dimension, kept):
    rows = np.eye(3, dimension, dtype=np.float32)
    assert checked_actions(rows, dimension).dtype == np.float64
    assert checked_actions(rows, dimension, single=True).dtype == kept
    rows[1, 2] = np.nan
    with pytest.raises(BadInputError, match="action 1"):
        checked_actions(rows, dimension)
