"""Preference data is read from every layout that people have, as the same preferences, and part by part."""

import json

import datasets
import numpy as np
import polars as pl
import pytest

from fairduel.errors import BadInputError
from fairduel.votes.rewards import embedding, pairs
from fairduel.votes.rewards.embedding import Sides, file_encoder, word_encoder
from fairduel.votes.rewards.pairs import is_preference_data, read_pairs
from fairduel.votes.rewards.planted import planted_preferences
from fairduel.votes.rewards.text_statistics import STATISTICS, choose_words, has_words, statistics_of

TABLE, _ = planted_preferences(pairs=60, voters=6)


def messages(text, role):
    return [{"role": role, "content": text}]


def same(one, other):
    for name in ("row", "hashes", "looks", "weight"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert [one.voters[code] for code in one.voter] == [other.voters[code] for code in other.voter]
    assert one.texts(np.arange(len(one))).rows() == other.texts(np.arange(len(other))).rows()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    path = tmp_path_factory.mktemp("pairs") / "data.jsonl"
    TABLE.write_ndjson(path)
    return path, read_pairs(path)


def test_text_messages_parquet_and_datasets_are_the_same_preferences(plain, tmp_path):
    path, expected = plain
    assert is_preference_data(path)
    TABLE.write_parquet(tmp_path / "data.parquet")
    same(read_pairs(tmp_path / "data.parquet"), expected)
    with_messages = TABLE.with_columns(
        pl.Series(side, [messages(text, "assistant") for text in TABLE[side]]) for side in ("chosen", "rejected")
    )
    with_messages.write_ndjson(tmp_path / "messages.jsonl")
    assert is_preference_data(tmp_path / "messages.jsonl")
    same(read_pairs(tmp_path / "messages.jsonl"), expected)
    found = read_pairs(datasets.Dataset.from_list(TABLE.to_dicts()))
    np.testing.assert_array_equal(found.hashes, expected.hashes)
    assert found.row[0] == 0


def test_a_conversation_without_a_prompt_column_keeps_what_was_asked(tmp_path):
    records = [
        {
            side: [*messages("Which drink?", "user"), *messages(text, "assistant")]
            for side, text in (("chosen", "Tea, it is warm and kind."), ("rejected", "Mud, it is cheap and brown."))
        }
    ]
    (tmp_path / "hh.jsonl").write_text(json.dumps(records[0]))
    assert read_pairs(tmp_path / "hh.jsonl").texts(np.array([0])).rows() == [
        ("Which drink?", "Tea, it is warm and kind.", "Mud, it is cheap and brown.")
    ]


@pytest.mark.parametrize("column", ["prompt", "context"])
def test_what_was_asked_in_messages_is_the_prompt_of_plain_answers(column):
    asked = [*messages("Be kind.", "system"), *messages("Which drink?", "user")]
    found = read_pairs([{column: asked, "response1": "tea", "response2": "mud", "overall_preference": -2}])
    assert found.texts(np.array([0])).rows() == [("Be kind.\nWhich drink?", "tea", "mud")]


def test_a_byte_order_mark_costs_no_row(plain, tmp_path):
    path, expected = plain
    (tmp_path / "data.jsonl").write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    same(read_pairs(tmp_path / "data.jsonl"), expected)


def test_what_a_voter_says_again_of_the_same_pair_counts_once(plain):
    _, expected = plain
    found = read_pairs(pl.concat([TABLE, TABLE]))
    assert found.unused == {"repeated rows": len(TABLE)}
    np.testing.assert_array_equal(found.hashes, expected.hashes)
    assert found.texts(np.arange(3)).rows() == expected.texts(np.arange(3)).rows()
    assert len(read_pairs(pl.concat([TABLE, TABLE]).drop("annotator"))) == 2 * len(TABLE)  # perhaps by others
    assert read_pairs(TABLE.rename({"annotator": "labeler"})).voters == expected.voters


def test_a_million_rows_are_read_part_by_part_as_if_at_once(plain, monkeypatch):
    path, expected = plain
    monkeypatch.setattr(pairs, "_AT_ONCE", 7)
    same(read_pairs(path, encoder=expected.encoder), expected)


@pytest.mark.parametrize(
    ("records", "first_won"),
    [
        ([{"response_a": "one two", "response_b": "three", "winner": w} for w in ("a", "b", "tie")], [True, False]),
        (
            [{"response_1": "one", "response_2": "two", "preference_strength": s} for s in (-3, 1, 0, None)],
            [True, False],
        ),
        ([{"response1": "one", "response2": "two", "overall_preference": s} for s in (-3, 1, 0)], [True, False]),
        (
            [{"answer_a": "one", "answer_b": "two", "score_a": a, "score_b": b} for a, b in ((2, 1), (1, 5), (3, 3))],
            [True, False],
        ),
        (
            [
                {"answer_1": "one", "answer_2": "two", "rating_1": a, "rating_2": b}
                for a, b in ((2, 1), (1, 5), (3, 3), ("n/a", 1))
            ],
            [True, False],
        ),
        (
            [
                {
                    "completion_a": "one",
                    "completion_b": "two",
                    "normal_worker_annotations": [{"evaluator": "ann", "overall_pref": "A-is-slightly-better"}],
                    "expert_worker_annotations": [
                        {"evaluator": "bob", "overall_pref": "B-is-clearly-better"},
                        {"evaluator": "cleo", "overall_pref": "Tie"},
                    ],
                }
            ],
            [True, False],
        ),
    ],
)
def test_other_layouts_name_the_better_text_and_leave_ties_out(records, first_won):
    found = read_pairs(records)
    assert found.first_won.tolist() == first_won
    assert found.unused == {"ties": 1}
    assert found.texts(np.array([0, 1]))["chosen"].to_list()[0].startswith("one")


def test_models_are_things_that_voters_may_prefer():
    records = TABLE.with_columns(chosen_model=pl.lit("oak"), rejected_model=pl.lit("elm")).to_dicts()
    found = read_pairs(records)
    assert found.word_names[-2:] == ("answers of elm", "answers of oak")
    assert found.words[:, [-2, -1]].toarray().tolist() == [[-1.0, 1.0]] * len(found)


def test_embeddings_of_a_file_are_those_of_the_texts(plain, tmp_path):
    path, _ = plain
    texts = sorted({*TABLE["chosen"], *TABLE["rejected"]})
    rng = np.random.default_rng(0)
    table = rng.normal(size=(len(texts), 5)).astype(np.float32)
    place = {text: number for number, text in enumerate(texts)}
    one, other = (table[[place[text] for text in TABLE[side]]] for side in ("chosen", "rejected"))
    np.savez(tmp_path / "by-text.npz", texts=np.array(texts), embeddings=table)
    np.savez(tmp_path / "by-row.npz", chosen=one, rejected=other)
    np.save(tmp_path / "by-row.npy", np.stack([one, other], axis=1))
    pl.DataFrame({"text": texts, "embedding": table.tolist()}).write_parquet(tmp_path / "by-text.parquet")
    for name in ("by-text.npz", "by-row.npz", "by-row.npy", "by-text.parquet"):
        found = read_pairs(path, encoder=file_encoder(tmp_path / name))
        np.testing.assert_allclose(found.meaning, one - other, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.npy", np.zeros((3, 5)), "must have the shape"),
        ("x.npz", {"texts": np.array(["a"]), "embeddings": np.zeros((2, 3))}, "one embedding"),
        ("x.npz", {"stuff": np.zeros(3)}, "needs arrays chosen and rejected"),
        ("x.npz", {"chosen": np.zeros((1, 2)), "rejected": np.zeros((1, 2))}, "the votes have more"),
        ("x.npz", {"texts": np.array(["a"]), "embeddings": np.zeros((1, 3))}, "has no embedding of the text"),
        ("x.txt", None, "unsupported file type"),
        ("x.npz", b"not an archive", "cannot read embeddings"),
    ],
)
def test_wrong_embeddings_are_one_sentence(plain, tmp_path, name, content, said):
    file = tmp_path / name
    if isinstance(content, dict):
        np.savez(file, **content)
    elif isinstance(content, bytes):
        file.write_bytes(content)
    elif content is not None:
        np.save(file, content)
    with pytest.raises(BadInputError, match=said):
        read_pairs(plain[0], encoder=file_encoder(file))


def test_encoded_texts_are_kept_by_content_and_damaged_ones_are_encoded_again(plain, tmp_path):
    calls = []

    def encode(texts):
        calls.append(len(texts))
        return np.array([[len(text)] for text in texts], dtype=np.float32)

    encoder = embedding.ByText("lengths", encode, tmp_path / "cache")
    first = read_pairs(plain[0], encoder=encoder).meaning
    np.testing.assert_array_equal(read_pairs(plain[0], encoder=encoder).meaning, first)
    assert len(calls) == 1
    [file] = (tmp_path / "cache").iterdir()
    file.write_bytes(b"half")
    np.testing.assert_array_equal(read_pairs(plain[0], encoder=encoder).meaning, first)
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ([], "holds no votes"),
        ([{"chosen": "same", "rejected": "same"}], "no preferences"),
        ([{"a": "x", "b": "y"}], "no column found"),
    ],
)
def test_a_file_without_preferences_is_one_sentence(source, said):
    with pytest.raises(BadInputError, match=said):
        read_pairs(source)


def test_names_are_a_poll_and_texts_are_preferences(tmp_path):
    assert not is_preference_data([{"first": "tea", "second": "milk", "winner": "first"}])
    assert not is_preference_data([{"chosen": "tea", "rejected": "milk"}])
    assert not is_preference_data(tmp_path / "missing.jsonl")
    names = [{"chosen": "武汉大学", "rejected": "東京大学"}]
    assert not is_preference_data(names)
    assert is_preference_data([{"chosen": "请您重新启动设备然后再试一次", "rejected": "我不知道您的设备怎么了呢"}])
    assert is_preference_data(TABLE)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("length", "one two, three"),
        ("list items", "- a\n* b\n 1. c"),
        ("headings and bold", "# A\nsome **bold** and __more__"),
        ("questions", "what? why?? how"),
        ("refusals", "I can't do this. I’m unable. As an AI"),
        ("politeness", "Thank you, sorry, please"),
        ("words in capitals", "THIS is SO NOT fine, says the UNO"),
    ],
)
def test_statistics_count_what_their_names_say(name, text):
    place = [each.name for each in STATISTICS].index(name)
    assert round(float(np.expm1(statistics_of(pl.Series([text]))[0, place]))) == 3


def test_words_are_whole_words_of_any_alphabet():
    found = has_words(pl.Series(["Der Tee, der TEE!", "Tees", "чай und tee"]), ["tee", "чай"])
    assert found.toarray().tolist() == [[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]


def test_texts_without_spaces_have_words():
    texts = pl.Series(["今天天气很好", "コーヒーをどうぞ", "GPT-4 is fine", "don't"])
    assert np.expm1(statistics_of(texts)[:, 0]).round().tolist() == [3, 4, 4, 1]
    assert choose_words(["今天天气很好"] * 2 + ["tea"] * 8) == ()
    encoder = word_encoder(["今天天气很好", "天气不好", "我不知道"] * 3)
    sides = Sides.of(
        np.arange(2), pl.Series(["天气很好", "天气很好"]), pl.Series(["今天天气", "我不知道"]), np.ones(2, bool)
    )
    near, far = np.linalg.norm(encoder.ahead(sides), axis=1)
    assert near < far
