"""Made-up files in the shapes that other tools write, each read as the votes that it means."""

import csv
import gzip
import io
import json

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairduel import BadInputError
from fairduel.votes import read_votes
from fairduel.votes.reading.shapes import SHAPES
from fairduel.votes.votes import Votes

FIRST, SECOND, TIE = 1.0, 0.0, 0.5


def seen(votes: Votes):
    return [
        (votes.items[a], votes.items[b], float(r))
        for a, b, r in zip(votes.first, votes.second, votes.result, strict=True)
    ]


def people(votes):
    return [votes.voters[voter] for voter in votes.voter]


def places(votes):
    return [votes.contexts[context] for context in votes.context]


def csv_text(*rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def read(folder, name, text, **settings):
    path = folder / name
    content = text.encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return read_votes(path, **settings)


# ---------------------------------------------------------------------- LMArena

BATTLE = {"model_a": "oak-7b", "model_b": "elm-2", "language": "English", "turn": 1, "tstamp": 5.5, "anony": True}
BATTLES = [
    {**BATTLE, "question_id": "q1", "winner": "model_a", "judge": "u1"},
    {**BATTLE, "question_id": "q2", "winner": "tie (bothbad)", "judge": "u2", "language": "German", "turn": 2},
    {**BATTLE, "question_id": "q3", "winner": "model_b", "judge": "u1", "anony": False},
]


def test_lmarena_33k_is_read_and_its_unique_questions_are_no_contexts(tmp_path):
    reading = read(tmp_path, "chatbot_arena.jsonl", lines(*BATTLES))
    assert seen(reading.votes) == [("oak-7b", "elm-2", r) for r in (FIRST, TIE, SECOND)]
    assert people(reading.votes) == ["u1", "u2", "u1"]
    assert reading.votes.context is None
    assert reading.votes.time.tolist() == [5.5] * 3
    assert reading.both_bad == 1
    hint, unique = reading.warnings
    assert hint.startswith("1 of 3 rows have anony = false")
    assert hint.endswith("anony = true (where=…).")
    assert unique == "every vote has its own question_id, so it is not used as the context."
    named = read(tmp_path, "named.jsonl", lines(*BATTLES), context="question_id").votes
    assert places(named) == ["q1", "q2", "q3"]


def test_lmarena_100k_has_its_voters_in_judge_hash_and_nested_tags(tmp_path):
    records = [
        {
            **{name: battle[name] for name in BATTLE},
            "question_id": "q",
            "winner": battle["winner"],
            "judge_hash": battle["judge"] * 9,
            "dedup_tag": {"high_freq": False, "sampled": place > 0},
            "conversation_a": [{"role": "user", "content": "Why?"}],
        }
        for place, battle in enumerate(BATTLES)
    ]
    path = tmp_path / "arena.parquet"
    pl.DataFrame(records).write_parquet(path)
    reading = read_votes(path, where={"dedup_tag.sampled": True})
    assert people(reading.votes) == ["u2" * 9, "u1" * 9]
    assert reading.votes.row.tolist() == [2, 3]
    assert (reading.left_out, reading.rows, reading.problems) == (1, 3, {})
    text = read(tmp_path, "arena.jsonl.gz", lines(*records), where={"dedup_tag.sampled": "TRUE"})
    assert seen(text.votes) == seen(reading.votes)
    assert "anony" in text.warnings[0]


def test_lmarena_140k_takes_the_session_for_the_voter(tmp_path):
    record = {"id": "x", "model_a": "oak", "model_b": "elm", "winner": "both_bad", "evaluation_session_id": "s1"}
    record |= {"evaluation_order": 1, "language": "en", "timestamp": "2025-07-01 10:00:00"}
    reading = read(tmp_path, "arena.jsonl", lines(record, {**record, "winner": "model_b", "timestamp": None}))
    assert seen(reading.votes) == [("oak", "elm", TIE), ("oak", "elm", SECOND)]
    assert people(reading.votes) == ["s1", "s1"]
    assert reading.both_bad == 1


@pytest.mark.parametrize("name", ["clean_battle_20990101.json", "clean_battle.json.gz", "wrapped.json", "lines.json"])
def test_json_is_an_array_an_object_with_one_or_lines(tmp_path, name):
    text = json.dumps(BATTLES, indent=1)
    text = {"wrapped.json": f'{{"battles": {text}, "version": 2}}', "lines.json": lines(*BATTLES)}.get(name, text)
    votes = read(tmp_path, name, text).votes
    assert seen(votes) == [("oak-7b", "elm-2", r) for r in (FIRST, TIE, SECOND)]
    assert votes.row.tolist() == [1, 2, 3]


def test_records_that_are_none_are_set_aside(tmp_path):
    text = json.dumps([BATTLES[0], 7, {**BATTLES[1], "model_a": "\ud800"}, None, BATTLES[2]])
    reading = read(tmp_path, "votes.json", text)
    assert reading.votes.row.tolist() == [1, 5]
    assert reading.set_aside.select("row", "reason").rows() == [
        (2, "not an object"),
        (3, "half a character (lone surrogate)"),
        (4, "not an object"),
    ]
    assert reading.set_aside["line"].to_list()[::2] == ["7", "null"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty or not JSON"),
        ("[]", "holds no votes: it needs a list of objects"),
        ("[1, 2]", "holds no votes"),
        ("7", "holds no votes"),
        ('[{"first": "tea"', "cannot read .*it is damaged"),
        ('{\n "votes": [', "cannot read .*it is damaged"),
        ("[" * 99_999, "nested too deeply"),
        ('{"a": [1], "b": [2]}', r"several lists \(a, b\): save the one with the votes"),
        ('[{"first": "tea", "second": "milk", "winner": 1, "winner": 2}]', "two values named 'winner' in one object"),
        ('[{"first": "tea", "second": "milk"}]', "no column found for the winner"),
    ],
)
def test_json_without_votes_is_one_sentence(tmp_path, text, reason):
    with pytest.raises(BadInputError, match=reason) as raised:
        read(tmp_path, "votes.json", text)
    assert "\n" not in str(raised.value)


def test_kaggle_has_one_column_for_each_outcome(tmp_path):
    header = ["id", "model_a", "model_b", "prompt", "response_a", "response_b"]
    header += ["winner_model_a", "winner_model_b", "winner_tie"]
    rows = [[str(n), "oak", "elm", '["Why?"]', "So.", "Because.", *end] for n, end in enumerate(["100", "010", "001"])]
    rows += [["3", "oak", "elm", '["How?"]', "So.", "Thus.", *"110"], ["4", "oak", "elm", '["Why?"]', "", "", *"000"]]
    reading = read(tmp_path, "train.csv", csv_text(header, *rows))
    assert seen(reading.votes) == [("oak", "elm", r) for r in (FIRST, SECOND, TIE)]
    assert places(reading.votes) == ['["Why?"]'] * 3
    assert reading.votes.sides_known
    assert reading.set_aside.select("row", "reason").rows() == [(5, "no winner"), (6, "no winner")]
    assert reading.columns["winner"] == "winner_model_a, winner_model_b, winner_tie"


# ---------------------------------------------------------------------- winner and loser


def test_gavel_says_who_won_but_not_where(tmp_path):
    header = ["Annotator ID", "Winner ID", "Loser ID", "Time"]
    rows = [["7", "31", "4", "2016-01-30 12:00:00"], ["8", "4", "31", "2016-01-30 12:00:30"], ["7", "4", "4", ""]]
    reading = read(tmp_path, "decisions.csv", csv_text(header, *rows))
    assert seen(reading.votes) == [("31", "4", FIRST), ("4", "31", FIRST)]
    assert people(reading.votes) == ["7", "8"]
    assert reading.votes.time[1] - reading.votes.time[0] == 30.0
    assert not reading.votes.sides_known
    assert any("does not say which item was shown first" in warning for warning in reading.warnings)
    assert dict(reading.problems) == {"item compared with itself": 1}


IDEAS = ["Vote ID", "Winner ID", "Winner Text", "Loser ID", "Loser Text", "Prompt ID"]
IDEAS += ["Response Time (s)", "Session Identifier"]
WISHES = [
    ["1", "11", "more trees", "12", "wider roads", "901", "3.5", "anne"],
    ["2", "12", "wider roads", "11", "more trees", "902", "4.5", "bert"],
]


def test_all_our_ideas_uses_the_texts_as_names(tmp_path):
    votes = read(tmp_path, "votes.csv", csv_text(IDEAS, *WISHES)).votes
    assert seen(votes) == [("more trees", "wider roads", FIRST), ("wider roads", "more trees", FIRST)]
    assert people(votes) == ["anne", "bert"]
    assert votes.time.tolist() == [3.5, 4.5]
    assert votes.context is None  # a prompt is a pair of items
    assert not votes.sides_known


def test_all_our_ideas_with_the_choices_as_shown_knows_the_sides(tmp_path):
    rows = [[*WISHES[0], "11", "12"], [*WISHES[1], "11", "12"], [*WISHES[1], "11", "13"]]
    reading = read(tmp_path, "votes.csv", csv_text([*IDEAS, "Left Choice ID", "Right Choice ID"], *rows))
    votes = reading.votes
    assert dict(reading.problems) == {"no winner": 1}  # neither side won
    assert seen(votes) == [("more trees", "wider roads", FIRST), ("more trees", "wider roads", SECOND)]
    assert votes.sides_known


def test_two_ideas_of_one_text_keep_their_numbers(tmp_path):
    rows = [*WISHES, ["3", "13", "more trees", "12", "wider roads", "903", "1", "anne"]]
    assert read(tmp_path, "votes.csv", csv_text(IDEAS, *rows)).votes.items == ("11", "12", "13")


def test_outcomes_of_competitors_are_points_of_the_first(tmp_path):
    rows = [["Ada", "Bo", "1"], ["Ada", "Bo", "0.5"], ["Bo", "Ada", "0"], ["Bo", "Ada", "0.00"], ["Bo", "Ada", "3"]]
    reading = read(tmp_path, "games.csv", csv_text(["competitor_1", "competitor_2", "outcome"], *rows))
    assert [r for *_, r in seen(reading.votes)] == [FIRST, TIE, SECOND, SECOND]
    assert dict(reading.problems) == {"unknown winner '3'": 1}
    frame = pl.DataFrame({"competitor_1": ["Ada", "Bo"], "competitor_2": ["Bo", "Ada"], "outcome": [1.0, 0.0]})
    assert read_votes(frame).votes.result.tolist() == [FIRST, SECOND]


# ---------------------------------------------------------------------- preference data


def test_trl_with_models_ranks_the_models(tmp_path):
    records = [
        {"prompt": "Why?", "chosen": "So.", "rejected": "No.", "chosen_model": "oak", "rejected_model": "elm"},
        {"prompt": "How?", "chosen": "Thus.", "rejected": "", "chosen_model": "elm", "rejected_model": "oak"},
        {"prompt": "Why?", "chosen": "Yes.", "rejected": "", "chosen_model": "elm", "rejected_model": None},
    ]
    reading = read(tmp_path, "train.jsonl", lines(*(record | {"annotator": "ann"} for record in records)))
    assert seen(reading.votes) == [("oak", "elm", FIRST), ("elm", "oak", FIRST)]
    assert people(reading.votes) == ["ann", "ann"]
    assert dict(reading.problems) == {"no second item": 1}
    assert not reading.votes.sides_known
    assert "every vote has its own prompt" in reading.warnings[-1]


def test_trl_with_texts_or_messages_compares_the_answers(tmp_path):
    plain = [{"prompt": "Why?", "chosen": good, "rejected": "No."} for good in ("So.", "[sic]")]
    reading = read(tmp_path, "plain.jsonl", lines(*plain))
    assert seen(reading.votes) == [("So.", "No.", FIRST), ("[sic]", "No.", FIRST)]
    assert places(reading.votes) == ["Why?", "Why?"]
    assert any("the items are the texts in chosen and rejected" in warning for warning in reading.warnings)
    messages = [
        {side: [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": record[side]}] for side in sides}
        for record in plain
        for sides in (("chosen", "rejected"),)
    ]
    assert seen(read(tmp_path, "messages.jsonl", lines(*messages)).votes) == seen(reading.votes)
    pl.DataFrame(messages).write_parquet(tmp_path / "messages.parquet")
    nested = read_votes(tmp_path / "messages.parquet").votes
    assert seen(nested) == seen(reading.votes)
    assert places(nested) == ["Why?", "Why?"]


def test_tldr_compares_policies_in_posts(tmp_path):
    pair = [{"text": "A cat.", "policy": "sup4"}, {"text": "A dog.", "policy": "ref"}]
    record = {"info": {"id": "t3_x", "post": "…"}, "summaries": pair, "choice": 0, "worker": "w1", "batch": "b"}
    records = [record, {**record, "choice": 1, "worker": "w2"}, {**record, "summaries": pair[:1]}]
    reading = read(tmp_path, "batch3.json", lines(*records))
    assert seen(reading.votes) == [("sup4", "ref", FIRST), ("sup4", "ref", SECOND)]
    assert people(reading.votes) == ["w1", "w2"]
    assert places(reading.votes) == ["t3_x", "t3_x"]
    assert reading.set_aside.select("row", "reason").rows() == [(3, "no first item")]
    pl.DataFrame(records).write_parquet(tmp_path / "tldr.parquet")
    assert seen(read_votes(tmp_path / "tldr.parquet").votes) == seen(reading.votes)


# ---------------------------------------------------------------------- annotation tools


def pairwise(side, person, **more):
    result = [{"type": "choices", "from_name": "mood", "value": {"choices": ["glad"]}}] if side else []
    result += [{"type": "pairwise", "from_name": "pw", "to_name": "a,b", "value": {"selected": side}}] if side else []
    return {"completed_by": person, "result": result, "created_at": "2024-05-01T10:00:00Z", "lead_time": 4.5, **more}


TASKS = [
    {
        "id": 1,
        "data": {"prompt": "Why?", "model_a": "oak", "model_b": "elm"},
        "annotations": [pairwise("left", 3), pairwise("right", {"id": 5, "email": "eve@example.org"})],
    },
    {"id": 2, "data": {"prompt": "How?", "model_a": "elm", "model_b": "oak"}, "annotations": []},
    {
        "id": 3,
        "data": {"prompt": "Why?", "model_a": "elm", "model_b": "oak"},
        "annotations": [pairwise("left", 3, was_cancelled=True), pairwise(None, 4), pairwise("left", 4)],
    },
]


def test_label_studio_has_several_annotations_of_a_task(tmp_path):
    reading = read(tmp_path, "project.json", json.dumps(TASKS))
    assert seen(reading.votes) == [("oak", "elm", FIRST), ("oak", "elm", SECOND), ("elm", "oak", FIRST)]
    assert people(reading.votes) == ["3", "eve@example.org", "4"]
    assert places(reading.votes) == ["Why?"] * 3
    assert reading.votes.row.tolist() == [1, 1, 3]
    assert reading.votes.sides_known
    assert reading.set_aside.select("row", "reason").rows() == [
        (2, "not answered"),
        (3, "not answered"),
        (3, "no winner"),
    ]
    same = read(tmp_path, "where.json", json.dumps([*TASKS, 7]), where={"data.prompt": "Why?"})
    assert seen(same.votes) == seen(reading.votes)
    assert same.votes.row.tolist() == [1, 1, 3]
    assert same.left_out == 1
    assert same.set_aside.select("row", "reason").rows()[-1] == (4, "not an object")


def test_label_studio_may_ask_by_a_choice(tmp_path):
    answers = [{"completed_by": 3, "result": [{"type": "choices", "value": {"choices": [c]}}]} for c in ("left", "tie")]
    task = {"data": {"left": "oak", "right": "elm"}, "annotations": answers}
    assert seen(read(tmp_path, "project.json", json.dumps([task])).votes) == [
        ("oak", "elm", FIRST),
        ("oak", "elm", TIE),
    ]


def test_label_studio_with_other_names_needs_them_named(tmp_path):
    tasks = [{**task, "data": {"x": task["data"]["model_a"], "y": task["data"]["model_b"]}} for task in TASKS]
    text = json.dumps(tasks)
    with pytest.raises(BadInputError, match=r"no column found for the first item and the second item.* x, y"):
        read(tmp_path, "project.json", text)
    votes = read(tmp_path, "project.json", text, first="x", second="y").votes
    assert seen(votes) == [("oak", "elm", FIRST), ("oak", "elm", SECOND), ("elm", "oak", FIRST)]


@pytest.mark.parametrize(
    "wrap", [lambda side: side, lambda side: [{"selected": side}], lambda side: {"selected": side}]
)
def test_label_studio_min_has_the_answer_under_its_own_name(tmp_path, wrap):
    record = {"answer1": "Yes.", "answer2": "No.", "annotator": 3, "annotation_id": 1, "lead_time": 2.0}
    record |= {"created_at": "2024-05-01T10:00:00Z"}
    records = [record | {"comparison": wrap("left")}, record | {"annotator": 4, "comparison": wrap("right")}, record]
    reading = read(tmp_path, "min.json", json.dumps(records))
    assert seen(reading.votes) == [("Yes.", "No.", FIRST), ("Yes.", "No.", SECOND)]
    assert people(reading.votes) == ["3", "4"]
    assert "the winner was read from column comparison, the only one with left and right." in reading.warnings
    assert "the items were read from the columns answer1 and answer2." in reading.warnings
    assert dict(reading.problems) == {"no winner": 1}


ARGILLA = [
    {
        "prompt": "Why?",
        "response_a": "So.",
        "response_b": "No.",
        "preference.responses": ["response_a", "response_b", "response_a"],
        "preference.responses.users": ["ann", "bob", "cy"],
        "preference.responses.status": ["submitted", "submitted", "draft"],
    },
    {
        "prompt": "Why?",
        "response_a": "Thus.",
        "response_b": "So.",
        "preference.responses": None,
        "preference.responses.users": None,
        "preference.responses.status": None,
    },
]


@pytest.mark.parametrize("kind", ["json", "parquet", "memory"])
def test_argilla_has_lists_of_responses(tmp_path, kind):
    path = tmp_path / f"records.{kind}"
    if kind == "parquet":
        pl.DataFrame(ARGILLA).write_parquet(path)
    else:
        path.write_text(json.dumps(ARGILLA))
    reading = read_votes(ARGILLA if kind == "memory" else path)
    assert seen(reading.votes) == [("So.", "No.", FIRST), ("So.", "No.", SECOND)]
    assert people(reading.votes) == ["ann", "bob"]
    assert places(reading.votes) == ["Why?"] * 2
    assert dict(reading.problems) == {"not answered": 2}
    assert reading.votes.row.tolist() == ([0, 0] if kind == "memory" else [1, 1])


def test_argilla_with_two_questions_needs_one_named(tmp_path):
    other = {f"safety.{name}": ARGILLA[0][f"preference.{name}"] for name in ("responses", "responses.users")}
    text = json.dumps([ARGILLA[0] | other])
    with pytest.raises(BadInputError, match="no column found for the winner: name it with winner=…"):
        read(tmp_path, "records.json", text)
    votes = read(tmp_path, "records.json", text, winner="preference").votes
    assert people(votes) == ["ann", "bob"]


# ---------------------------------------------------------------------- other arenas


def test_compar_ia_names_the_chosen_model_or_says_equal(tmp_path):
    header = ["model_a_name", "model_b_name", "chosen_model_name", "both_equal", "conversation_pair_id"]
    header += ["session_hash", "visitor_id", "timestamp"]
    rows = [
        ["oak", "elm", "oak", "False", "c1", "s1", "v1", "2025-01-01 10:00:00"],
        ["oak", "elm", "", "True", "c2", "s2", "v1", "2025-01-01 10:01:00"],
        ["elm", "oak", "oak", "false", "c3", "s3", "v2", "2025-01-01 10:02:00"],
        ["elm", "oak", "", "", "c4", "s4", "v2", "2025-01-01 10:03:00"],
    ]
    reading = read(tmp_path, "votes.tsv", csv_text(header, *rows).replace(",", "\t"))
    assert seen(reading.votes) == [("oak", "elm", FIRST), ("oak", "elm", TIE), ("elm", "oak", SECOND)]
    assert people(reading.votes) == ["v1", "v1", "v2"]
    assert reading.votes.context is None
    assert dict(reading.problems) == {"no winner": 1}


def test_evalica_and_arenakit_are_read_wholly(tmp_path):
    votes = read(tmp_path, "evalica.csv", "left,right,winner\noak,elm,left\noak,elm,tie\n").votes
    assert seen(votes) == [("oak", "elm", FIRST), ("oak", "elm", TIE)]
    text = "model_a,model_b,winner,item_id,voter_id\noak,elm,model_a,i1,v1\nelm,oak,tie,i1,v2\noak,elm,model_b,i2,v1\n"
    votes = read(tmp_path, "arenakit.csv", text).votes
    assert people(votes) == ["v1", "v2", "v1"]
    assert places(votes) == ["i1", "i1", "i2"]


# ---------------------------------------------------------------------- anything in these columns

PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 3), st.floats(), st.sampled_from(["", "left", "first", "[", "{}"])
)
KEYS = st.sampled_from(
    ["policy", "result", "value", "selected", "type", "was_cancelled", "completed_by", "content", "a", "b"]
)
ANYTHING = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.convert.__name__)
@given(data=st.data())
@settings(max_examples=12)
def test_any_values_are_votes_set_aside_or_one_sentence(shape, data):
    names = [name.replace("*", "q") for name in (*shape.needs, *(shape.uses or ()))]
    columns = [*names, "model_a", "model_b"]
    records = data.draw(st.lists(st.fixed_dictionaries(dict.fromkeys(columns, ANYTHING)), min_size=1, max_size=4))
    try:
        reading = read_votes(records)
    except BadInputError:
        return
    assert len(reading.votes) + len(reading.set_aside) == reading.rows
    assert set(reading.votes.row) | set(reading.set_aside["row"]) == set(range(len(records)))
