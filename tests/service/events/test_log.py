import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairduel.service.events.kinds import StudyChanged, read_event
from fairduel.service.events.log import (
    GENESIS,
    DamagedLogError,
    canonical,
    next_event,
    read_receipt,
    verified,
)

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def chain(bodies):
    events, before = [], GENESIS
    for position, body in enumerate(bodies, start=1):
        events.append(next_event(before, position, "s", 0.1 * position, StudyChanged(body)))
        before = events[-1].hash
    return events


@settings(max_examples=20)
@given(st.lists(st.dictionaries(st.text(), VALUES, max_size=3), min_size=1, max_size=5))
def test_events_survive_being_written_and_read(bodies):
    events = chain(bodies)
    rows = [event.row() for event in events]
    again = [read_event(r["position"], r["study"], r["kind"], r["at"], r["body"], r["hash"]) for r in rows]
    assert again == events
    assert list(verified(again)) == events
    assert [canonical(event.body.written()) for event in again] == [event.text for event in events]


def test_every_flipped_bit_is_noticed():
    """In any column of any event, also the last: its hash is part of the receipt that its voter holds."""
    events, rng = chain([{"answer": "left", "n": n} for n in range(6)]), random.Random(0)
    for _ in range(1000):
        place = rng.randrange(len(events))
        row = dict(events[place].row())
        column = rng.choice(["position", "study", "kind", "at", "body", "hash"])
        value = row[column]
        if isinstance(value, (int, float)):
            row[column] = value + rng.choice([-1, 1]) * 2.0 ** rng.randrange(-20, 20)
        else:
            text = value.encode() if isinstance(value, str) else value
            bit = rng.randrange(8 * len(text))
            text = bytes(byte ^ (1 << bit % 8) if number == bit // 8 else byte for number, byte in enumerate(text))
            row[column] = text.decode("latin-1") if isinstance(value, str) else text
        with pytest.raises(DamagedLogError):  # noqa: PT012  # reading may notice it already
            changed = read_event(row["position"], row["study"], row["kind"], row["at"], row["body"], row["hash"])
            list(verified([*events[:place], changed, *events[place + 1 :]]))


@pytest.mark.parametrize("change", [lambda e: e[:2] + e[3:], lambda e: [*e[:2], e[1], *e[2:]], lambda e: e[::-1]])
def test_removed_repeated_and_swapped_events_are_noticed(change):
    with pytest.raises(DamagedLogError, match="does not fit"):
        list(verified(change(chain([{"n": n} for n in range(5)]))))


@given(st.text(max_size=80))
def test_a_receipt_is_read_or_refused(text):
    found = read_receipt(text)
    assert found is None or len(found[1]) == 32


def test_a_receipt_is_read_back():
    event = chain([{}])[0]
    assert read_receipt(event.receipt) == (1, event.hash)


@pytest.mark.parametrize("change", ["0{}", "+{}", " {}", "{}00", "-{}", "{}\n", "1{}"])
def test_a_receipt_has_one_spelling(change):
    receipt = "12-" + "ab" * 32
    assert read_receipt(receipt) == (12, b"\xab" * 32)
    assert read_receipt(change.format(receipt)) != (12, b"\xab" * 32)
    assert read_receipt(receipt.upper()) is None
