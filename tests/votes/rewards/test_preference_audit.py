"""The audit of preference data with planted liars finds them, says what they prefer, and hands better labels on."""

import numpy as np
import polars as pl
import pytest

from fairduel.errors import BadInputError
from fairduel.votes.rewards.handing_on import audited_preferences, export_preferences
from fairduel.votes.rewards.pairs import read_pairs
from fairduel.votes.rewards.planted import planted_preferences
from fairduel.votes.rewards.preference_audit import audit_preferences

SIZE = {"pairs": 1500, "voters": 50}


@pytest.fixture(scope="module")
def planted():
    table, liars = planted_preferences(**SIZE, lying=0.3)
    return table, liars, audit_preferences(read_pairs(table))


def test_liars_are_the_camp_against_the_rest_and_no_honest_voter_is_flagged(planted):
    _, liars, found = planted
    of_liars = np.array([name in liars for name in found.pairs.voters])
    assert found.opposed[of_liars].mean() > 0.9
    assert not found.opposed[~of_liars].any()
    assert not found.evidence.flagged[~of_liars].any()
    assert found.evidence.flagged.any()
    assert any(each.what == "shorter texts" for each in found.prefers)
    assert found.cost.without > found.cost.with_all


def test_labels_of_liars_are_doubted(planted):
    _, liars, found = planted
    of_liars = np.array([found.pairs.voters[code] in liars for code in found.pairs.voter])
    assert np.median(found.wrong[of_liars]) > 0.5 > np.median(found.wrong[~of_liars])
    assert all(each.probability >= 0.9 for each in found.doubtful)


def test_terminal_page_and_json_have_the_same_sentences(planted):
    from fairduel.report.votes.preference_page import preference_sections  # noqa: PLC0415

    found = planted[2]
    said = [sentence for section in preference_sections(found) for sentence in section.paragraphs]
    record = found.record()
    assert record["summary"] == found.summary()
    assert set(found.camp_sentences()) <= set(said)
    assert set(found.camp_sentences()) <= set(found.summary())
    assert found.cost.sentence in said
    assert record["cost"]["sentence"] == found.cost.sentence


def test_every_preference_has_a_certificate_in_page_table_and_json(planted):
    from fairduel.report.votes.preference_page import preference_sections  # noqa: PLC0415

    found = planted[2]
    certificates, labels, record = found.certificates, found.labels().sort("row"), found.record()
    assert (certificates.voters, certificates.groups, certificates.aim) == (50, 11, 2)
    assert labels["least_liars"].to_list() == certificates.least[np.argsort(found.pairs.row)].tolist()
    assert certificates.share == (labels["least_liars"] >= 2).mean() > 0.8
    assert record["certificates"]["sentence"] == certificates.sentence == found.summary()[-1]
    assert certificates.sentence in [said for section in preference_sections(found) for said in section.paragraphs]
    for place, each in enumerate(record["probably_wrong"]):
        row = labels.row(by_predicate=pl.col("row") == each["row"], named=True)
        expected = f"The {row['preferred']} text is preferred unless at least {row['least_liars']} of 50 voters lie."
        assert each["certificate"] == found.doubtful[place].certificate == expected


def test_no_single_voter_changes_a_preference_that_two_must_change():
    """Ann, who judged one pair twice, answers at will: the same both times (a repeated row), or two ways."""
    table = planted_preferences(pairs=160, voters=16, lying=0.0)[0]
    name = table["annotator"][0]
    table = pl.concat([table, table[:1]])
    before = audit_preferences(read_pairs(table)).certificates
    rng = np.random.default_rng(1)
    for _ in range(4):
        lies = ((table["annotator"] == name).to_numpy()) & (rng.random(161) < 0.6)
        lies[[0, 160]] = [False, True]
        swapped = table.with_columns(
            pl.when(pl.Series(lies)).then("rejected").otherwise("chosen").alias("chosen"),
            pl.when(pl.Series(lies)).then("chosen").otherwise("rejected").alias("rejected"),
        )
        after = audit_preferences(read_pairs(swapped)).certificates
        side = np.where(lies[:160], -after.side[:160], after.side[:160])
        assert (side == before.side)[before.least > 1].all()
        assert np.abs(after.least[:160] - before.least).max() == 1


def test_without_voters_nobody_is_checked_but_labels_are():
    table, _ = planted_preferences(pairs=400, voters=20, lying=0.0)
    found = audit_preferences(read_pairs(table.drop("annotator")))
    assert found.headlines() == ["The file does not say who voted, so no voter was checked."]
    assert found.voters is None
    assert found.cost is None
    assert 0.0 < found.wrong.mean() < 0.5
    assert len(found.to_frame()) == 400
    assert found.certificates is None
    assert "certificates" not in found.record()


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table[:1],
        lambda table: pl.concat([table[:1]] * 50),
        lambda table: table.with_columns(annotator=pl.lit("Ann")),
        lambda table: table.with_columns(prompt=pl.lit("?")),
    ],
    ids=["one vote", "one vote 50 times", "one voter", "one prompt"],
)
def test_votes_that_nobody_else_predicts_flag_nobody(change):
    found = audit_preferences(read_pairs(change(planted_preferences(pairs=80, voters=8, lying=0.0)[0])))
    assert not found.someone_flagged
    assert np.isfinite(found.wrong).all()


def test_who_disagrees_by_chance_is_described_and_costs_nothing():
    table, _ = planted_preferences(pairs=200, voters=10, lying=0.0)
    texts = [table["chosen"], table["rejected"]]
    coin = pl.Series(np.random.default_rng(9).random(200) < 0.5)
    one, other = (pl.select(pl.when(coin).then(b).otherwise(a)).to_series() for a, b in (texts, texts[::-1]))
    found = audit_preferences(read_pairs(table.with_columns(chosen=one, rejected=other)))
    assert found.opposed.sum() == 1
    assert found.cost is None
    assert "Nothing that can be counted" in " ".join(found.summary())


def test_of_two_like_camps_nobody_can_know_which_is_right_and_known_answers_decide():
    honest, _ = planted_preferences(pairs=800, voters=20, lying=0.0)
    other, _ = planted_preferences(pairs=900, voters=20, lying=0.0, seed=6)  # 100 votes more, all reversed
    other = other.with_columns(
        chosen=other["rejected"], rejected=other["chosen"], annotator=pl.lit("other-") + pl.col("annotator")
    )
    both = pl.concat([honest, other])
    pairs = read_pairs(both)
    unknown = audit_preferences(pairs)
    assert unknown.undecided
    assert "cannot tell which camp is right" in unknown.headlines()[0]
    truth, _ = planted_preferences(pairs=120, voters=20, lying=0.0, seed=5)
    known = read_pairs(truth, encoder=pairs.encoder)
    decided = audit_preferences(pairs, known=known)
    assert not decided.undecided
    of_others = np.array([name.startswith("other-") for name in pairs.voters])
    assert decided.truth[~of_others].mean() > 0.5 > decided.truth[of_others].mean()


@pytest.mark.parametrize("labels", ["weigh", "relabel", "drop"])
def test_handed_on_labels_are_weighed_exchanged_or_left_out(planted, labels, tmp_path):
    _, _, found = planted
    given = audited_preferences(found, labels=labels)
    frame, wrong = given.frame, found.wrong
    assert len(frame) + sum(given.left_out.values()) == len(found.pairs)
    texts = found.pairs.texts(np.arange(len(found.pairs)))
    if labels == "drop":
        assert (frame["weight"] == 1.0).all()
        assert (frame["probably_wrong"] <= 0.5).all()
        assert not frame["flagged"].any()
        return
    expected = np.abs(2.0 * wrong - 1.0) if labels == "relabel" else np.maximum(1.0 - 2.0 * wrong, 0.0)
    np.testing.assert_allclose(frame["weight"].to_numpy(), expected)
    swapped = (wrong > 0.5) & (labels == "relabel")
    assert frame["relabelled"].to_list() == swapped.tolist()
    assert frame["chosen"].to_list() == np.where(swapped, texts["rejected"], texts["chosen"]).tolist()
    assert (frame["margin"] >= 0.0).all()
    written = export_preferences(found, tmp_path, formats=("trl", "kto"), labels=labels)
    assert dict(written.files) == {"trl.jsonl": len(frame), "kto.jsonl": 2 * len(frame)}
    assert pl.read_ndjson(tmp_path / "trl.jsonl")["chosen"].to_list() == frame["chosen"].to_list()


def test_rows_that_are_no_preference_are_counted_as_left_out():
    table, _ = planted_preferences(pairs=60, voters=6, lying=0.0)
    found = audited_preferences(audit_preferences(read_pairs(pl.concat([table, table[:20]]))))
    assert found.left_out == {"repeated rows": 20}
    assert found.brief().startswith("60 of 80 votes are preferences; left out: 20")


def test_wrong_settings_are_one_sentence(planted):
    with pytest.raises(BadInputError, match="treatment of labels"):
        audited_preferences(planted[2], labels="shuffle")
    with pytest.raises(BadInputError, match="format"):
        export_preferences(planted[2], "x", formats=("xml",))
