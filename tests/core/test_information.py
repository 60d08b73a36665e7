import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairduel.core.information import (
    GRAM_UPDATES,
    HIGH_DIMENSION,
    SMALL_SET,
    UPDATES,
    WAITING,
    Information,
    add_difference,
    effective_dimension,
    products,
    rank_one,
    width_between,
)

any_seed = st.integers(0, 2**32 - 1)


def relative_error(actual, expected):
    return np.abs(actual - expected).max() / np.abs(expected).max()


def filled(seed, dimension=3, count=40, ridge=0.25):
    rng = np.random.default_rng(seed)
    information = Information(dimension, ridge)
    for _ in range(count):
        information.add(rng.uniform(-1, 1, dimension), float(rng.uniform(0.01, 1)))
    return information


def test_it_starts_as_the_ridge():
    information = Information(3, 0.5)
    assert information.matrix.tolist() == (0.5 * np.eye(3)).tolist()
    assert information.inverse.tolist() == (2.0 * np.eye(3)).tolist()
    assert information.log_determinant == pytest.approx(3 * math.log(0.5))


@pytest.mark.parametrize("steepness", [0.0, 3.0, 6.0])
def test_a_hundred_thousand_updates_stay_exact(steepness):
    rng = np.random.default_rng(0)
    count, dimension = 100_000 + 511, 5  # the last 511 come after the last fresh start
    spread = 10.0 ** np.linspace(0, -steepness, dimension)
    rotation = np.linalg.qr(rng.standard_normal((dimension, dimension)))[0]
    directions = (rng.uniform(-1, 1, (count, dimension)) * spread) @ rotation
    coefficients = rng.uniform(1e-3, 1, count)
    information = Information(dimension, 0.25)
    for direction, coefficient in zip(directions, coefficients.tolist(), strict=True):
        information.add(direction, coefficient)
    exact = 0.25 * np.eye(dimension) + (directions * coefficients[:, None]).T @ directions
    assert relative_error(information.matrix, exact) <= 1e-11
    assert relative_error(information.inverse, np.linalg.inv(exact)) <= 1e-9
    assert information.log_determinant == pytest.approx(np.linalg.slogdet(exact)[1], rel=1e-9)


def test_rounding_does_not_pile_up_in_rank_one_updates():
    """Looked at after each update: without a fresh start at 1024 the error would be 1e-7."""
    rng = np.random.default_rng(0)
    information = Information(20, 1e-10)
    for _ in range(1100):
        information.add(rng.uniform(-1, 1, 20), 0.5)
        inverse = information.inverse
    assert relative_error(inverse, np.linalg.inv(information.matrix)) <= 1e-13


@pytest.mark.parametrize(
    ("updates", "is_fresh"), [(1, False), (1023, False), (1024, True), (1025, False), (4096, True)]
)
def test_an_error_in_the_inverse_is_gone_after_every_1024th_update(updates, is_fresh):
    information = filled(0, dimension=5)
    matrix, inverse = information.matrix, information.inverse * (1 + 1e-6)
    rank_one(matrix, inverse, np.full(5, 0.3), 0.5, updates)
    assert (relative_error(inverse, np.linalg.inv(matrix)) <= 1e-12) == is_fresh


def test_rounding_of_a_bad_start_does_not_stay():
    rng = np.random.default_rng(0)
    directions = rng.uniform(-1, 1, (3000, 5))
    information = Information(5, 1e-8)
    for direction in directions:
        information.add(direction, 0.5)
    exact = 1e-8 * np.eye(5) + 0.5 * directions.T @ directions
    assert relative_error(information.inverse, np.linalg.inv(exact)) <= 1e-13


@given(any_seed, st.integers(1, 12), st.integers(0, 60))
def test_the_matrices_are_exactly_symmetric(seed, dimension, count):
    information = filled(seed, dimension, count)
    np.testing.assert_array_equal(information.inverse, information.inverse.T)
    np.testing.assert_array_equal(information.matrix, information.matrix.T)


def test_the_matrices_stay_exactly_symmetric_after_a_fresh_start():
    information = filled(0, dimension=7, count=2100)
    np.testing.assert_array_equal(information.inverse, information.inverse.T)


@given(any_seed, st.integers(1, 12), st.integers(0, 60))
def test_inverse_and_log_determinant_follow_the_matrix(seed, dimension, count):
    information = filled(seed, dimension, count)
    assert relative_error(information.inverse, np.linalg.inv(information.matrix)) <= 1e-10
    assert information.log_determinant == pytest.approx(np.linalg.slogdet(information.matrix)[1], abs=1e-9)


@given(any_seed, st.floats(1e-3, 1))
def test_remove_undoes_add(seed, coefficient):
    information = filled(seed)
    before = information.state()
    direction = np.random.default_rng(seed).uniform(-2, 2, 3)
    information.add(direction, coefficient)
    assert relative_error(information.inverse, before["inverse"]) > 0
    information.add(direction, -coefficient)
    np.testing.assert_allclose(information.matrix, before["matrix"], atol=1e-12)
    np.testing.assert_allclose(information.inverse, before["inverse"], atol=1e-10)
    assert information.log_determinant == pytest.approx(before["log_determinant"], abs=1e-10)


@pytest.mark.parametrize("coefficient", [1e6, 1e9])
def test_removing_nearly_all_of_a_direction_loses_only_what_the_sum_lost(coefficient):
    information = Information(2, 0.25)
    direction = np.array([0.6, 0.8])
    information.add(direction, coefficient)
    information.add(direction, -coefficient)
    np.testing.assert_allclose(information.matrix, 0.25 * np.eye(2), atol=1e-15 * coefficient)
    np.testing.assert_allclose(information.inverse, 4.0 * np.eye(2), atol=1e-13 * coefficient)
    assert information.log_determinant == pytest.approx(2 * math.log(0.25), abs=1e-13 * coefficient)


@given(any_seed)
def test_a_width_is_the_norm_in_the_inverse(seed):
    information = filled(seed)
    vector = np.random.default_rng(seed).uniform(-2, 2, 3)
    matrix = information.matrix
    assert information.width(vector) == pytest.approx(math.sqrt(vector @ np.linalg.solve(matrix, vector)), rel=1e-9)


@pytest.mark.parametrize("dimension", [1, 5, 8, 9, 40])
@pytest.mark.parametrize("count", [0, 1, 30])
def test_products_by_hand_are_those_of_numpy(dimension, count):
    rng = np.random.default_rng(dimension)
    rows, vector = rng.normal(size=(count, dimension)), rng.normal(size=dimension)
    np.testing.assert_allclose(products(rows, vector), rows @ vector, rtol=1e-12, atol=1e-13)


def test_nothing_has_no_width():
    assert filled(0).width(np.zeros(3)) == 0.0


def test_a_direction_narrows_as_it_is_asked():
    information, direction = Information(2, 0.25), np.array([1.0, -1.0])
    widths = []
    for _ in range(5):
        widths.append(information.width(direction))
        information.add(direction, 1.0)
    np.testing.assert_allclose(widths, [math.sqrt(2 / (0.25 + 2 * k)) for k in range(5)], rtol=1e-13)


def test_its_state_continues_bit_for_bit():
    original = filled(3, count=1020)
    again = Information.from_state(original.state(), 3)
    rng = np.random.default_rng(4)
    for _ in range(10):  # across the fresh start at 1024
        direction = rng.uniform(-1, 1, 3)
        original.add(direction, 0.5)
        again.add(direction, 0.5)
        np.testing.assert_array_equal(again.inverse, original.inverse)
        np.testing.assert_array_equal(again.matrix, original.matrix)
        assert again.log_determinant == original.log_determinant


def test_its_state_is_a_copy():
    information = filled(3)
    state = information.state()
    kept = state["inverse"].copy()
    information.add(np.ones(3), 1.0)
    np.testing.assert_array_equal(state["inverse"], kept)


# ---------------------------------------------------------------------- the Gram matrix kept in high dimension


def looked_at(dimension=HIGH_DIMENSION, count=7):
    actions = np.random.default_rng(1).uniform(-1, 1, (count, dimension)) / math.sqrt(dimension)
    information = Information(dimension, 0.25)
    information.set_actions(actions)
    information.set_actions(actions)
    return information, actions


def test_a_set_asked_again_has_its_gram_matrix_kept_up_to_date():
    information, actions = looked_at()
    rng = np.random.default_rng(2)
    for _ in range(1500):  # across a fresh start
        a, b = rng.choice(7, 2, replace=False)
        direction = actions[a] - actions[b]
        add_difference(information.arrays, direction, 0.5, a, b)
        information.set_actions(actions)
    gram = actions @ np.linalg.inv(information.matrix) @ actions.T
    np.testing.assert_allclose(information.gram, gram, rtol=1e-9, atol=1e-12)
    difference = actions[2] - actions[5]
    assert width_between(information.arrays, difference, 2, 5) == pytest.approx(information.width(difference), rel=1e-8)


def test_a_kept_gram_matrix_hides_nothing_from_the_matrix():
    information, actions = looked_at()
    plain = Information(HIGH_DIMENSION, 0.25)
    for a, b in [(0, 1), (2, 3), (1, 6)]:
        add_difference(information.arrays, actions[a] - actions[b], 0.5, a, b)
        plain.add(actions[a] - actions[b], 0.5)
    assert information.arrays.marks[WAITING] == 3
    np.testing.assert_array_equal(information.inverse, plain.inverse)
    assert information.log_determinant == pytest.approx(plain.log_determinant, rel=1e-13)


def test_a_gram_matrix_is_dropped_with_its_set_or_an_update_from_elsewhere():
    information, actions = looked_at()
    assert information.gram is not None
    information.set_actions(actions[:5])
    np.testing.assert_allclose(information.gram, actions[:5] @ information.inverse @ actions[:5].T, rtol=1e-9)
    information.set_actions(None)
    assert information.gram is None
    information, actions = looked_at()
    information.add(np.ones(HIGH_DIMENSION), 1.0)
    assert information.gram is None
    information.set_actions(actions)
    gram = actions @ np.linalg.inv(information.matrix) @ actions.T
    np.testing.assert_allclose(information.gram, gram, rtol=1e-9)


def test_a_changed_table_is_not_taken_for_the_old_one():
    information, actions = looked_at()
    actions[0] *= 0.5
    information.set_actions(actions)
    np.testing.assert_allclose(information.gram, actions @ information.inverse @ actions.T, rtol=1e-9)


def test_in_low_dimension_no_update_waits_and_only_few_actions_have_a_gram_matrix():
    information, actions = looked_at(dimension=HIGH_DIMENSION - 1)
    add_difference(information.arrays, actions[0] - actions[1], 0.5, 0, 1)
    assert information.arrays.marks[WAITING] == 0
    np.testing.assert_allclose(information.gram, actions @ information.inverse @ actions.T, rtol=1e-9, atol=1e-12)
    assert looked_at(dimension=HIGH_DIMENSION - 1, count=SMALL_SET + 1)[0].gram is None


def test_features_in_single_precision_give_nearly_the_same_widths():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 80)) / 10
    information = Information(80, ridge=0.5)
    for row in rows[:20]:
        information.add(row, 1.0)
    exact = [information.width(rows[0] - other) for other in rows[1:]]
    information.set_actions(rows.astype(np.float32))
    assert information.gram is not None
    assert information.gram.dtype == np.float64
    single = [width_between(information.arrays, rows[0] - other, 0, i + 1) for i, other in enumerate(rows[1:])]
    np.testing.assert_allclose(single, exact, rtol=1e-4)


@pytest.mark.parametrize("dimension", [3, HIGH_DIMENSION])
def test_a_replaced_matrix_has_its_inverse_determinant_and_gram_matrix(dimension):
    """Also where updates of the matrix before were deferred."""
    rng = np.random.default_rng(0)
    actions = rng.normal(size=(5, dimension)) / 10
    information = Information(dimension, ridge=0.5)
    for _ in range(3):
        information.set_actions(actions)
    add_difference(information.arrays, actions[0] - actions[1], 2.0, 0, 1)
    square = rng.normal(size=(dimension, dimension))
    matrix = square @ square.T + np.eye(dimension)
    information.replace(matrix)
    np.testing.assert_array_equal(information.matrix, matrix)
    np.testing.assert_allclose(information.inverse @ matrix, np.eye(dimension), atol=1e-8)
    np.testing.assert_array_equal(information.inverse, information.inverse.T)
    assert information.log_determinant == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-12)
    information.set_actions(actions)
    np.testing.assert_allclose(information.gram, actions @ np.linalg.inv(matrix) @ actions.T, rtol=1e-6, atol=1e-9)


@given(any_seed)
def test_the_effective_dimension_is_the_trace_of_its_definition(seed):
    rng = np.random.default_rng(seed)
    rows, ridge = rng.normal(size=(int(rng.integers(1, 9)), 5)), float(rng.uniform(0.1, 10.0))
    gram = rows.T @ rows
    expected = np.trace(gram @ np.linalg.inv(gram + ridge * np.eye(5)))
    assert effective_dimension(rows, ridge) == pytest.approx(expected, rel=1e-9)
    assert effective_dimension(rows, ridge) <= min(rows.shape)


def test_withdrawn_duels_and_rounds_about_two_items_keep_the_gram_matrix():
    """And so cost K², not K³: no update is applied to Σ, and the Gram matrix is never computed again."""
    actions, rng = np.eye(HIGH_DIMENSION + 6)[:-4], np.random.default_rng(3)
    information = Information(HIGH_DIMENSION + 6, 0.25)
    information.set_actions(actions)
    information.set_actions(actions)
    expected, asked = 0.25 * np.eye(HIGH_DIMENSION + 6), []
    for turn in range(300):
        a, b = rng.choice(len(actions), 2, replace=False).tolist()
        difference, weight = actions[a] - actions[b], float(rng.uniform(0.1, 1.0))
        if turn % 3 == 0:
            information.set_actions(actions[[a, b]])
            assert information.gram.shape == (2, 2)
            add_difference(information.arrays, difference, weight, 0, 1)
        else:
            information.set_actions(actions)
            add_difference(information.arrays, difference, weight, a, b)
        asked.append((difference, weight))
        expected += weight * np.outer(difference, difference)
        if turn % 4:
            difference, weight = asked.pop(int(rng.integers(len(asked))))
            information.add(difference, -weight)
            expected -= weight * np.outer(difference, difference)
    information.set_actions(actions)
    assert information.arrays.marks[UPDATES] == 0
    assert information.arrays.marks[GRAM_UPDATES] == 300 + 225
    np.testing.assert_allclose(information.gram, actions @ np.linalg.inv(expected) @ actions.T, rtol=1e-9, atol=1e-11)
    assert information.log_determinant == pytest.approx(np.linalg.slogdet(expected)[1], rel=1e-11)
    np.testing.assert_allclose(information.matrix, expected, atol=1e-12)
    np.testing.assert_allclose(information.inverse, np.linalg.inv(expected), rtol=1e-9, atol=1e-11)


def test_two_items_from_elsewhere_and_nearly_all_of_a_direction_are_not_deferred():
    information, actions = looked_at()
    information.set_actions(2.0 * actions[:2])
    np.testing.assert_allclose(information.gram, 4.0 * actions[:2] @ information.inverse @ actions[:2].T, rtol=1e-9)
    information, actions = looked_at()
    difference = actions[0] - actions[1]
    add_difference(information.arrays, difference, 1e6, 0, 1)
    information.add(difference, -1e6)
    assert information.gram is None
    assert information.log_determinant == pytest.approx(HIGH_DIMENSION * math.log(0.25), rel=1e-6)
