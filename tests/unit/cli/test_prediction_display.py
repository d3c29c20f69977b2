"""Predictions for people."""

import pytest

from bertsmith.cli.evaluation_display import show_details
from bertsmith.cli.prediction_display import isolated, prediction_lines, shortened_line, similarity_lines

ARABIC = "\u0631\u064a\u0627\u0636\u0629"
ISOLATED = f"\u2068{ARABIC}\u2069"


def test_text_that_runs_from_right_to_left_is_isolated() -> None:
    assert isolated("plain text \u6771\u4eac 12") == "plain text \u6771\u4eac 12"
    assert isolated(ARABIC) == ISOLATED
    assert isolated("\u05e9\u05dc\u05d5\u05dd").startswith("\u2068")


def test_texts_are_shown_on_one_line() -> None:
    assert shortened_line("a\n b\t c") == "a b c"
    assert shortened_line("x" * 200) == f"{'x' * 100}…"


def test_a_class_is_shown_with_its_runners_up_where_they_are_wanted() -> None:
    values = {"text": ARABIC, "label": "wet", "score": 0.7, "scores": {"wet": 0.7, "dry": 0.2, "cold": 0.1}}
    assert prediction_lines("classify", values) == [f"wet\t70.00%\t{ISOLATED}"]
    assert prediction_lines("classify", values, top_k=2)[1:] == ["  dry\t20.00%"]
    pair = values | {"pair": "second"}
    assert prediction_lines("classify", pair) == [f"wet\t70.00%\t{ISOLATED}\tsecond"]


def test_labels_are_shown_with_their_scores() -> None:
    values = {"text": "a text", "labels": ["wet", "cold"], "scores": {"wet": 0.9, "cold": 0.6, "dry": 0.1}}
    assert prediction_lines("multilabel", values, top_k=0) == ["wet 90%, cold 60%\ta text"]
    assert prediction_lines("multilabel", values, top_k=3) == ["wet 90%, cold 60%\ta text", "  not dry\t10%"]
    assert prediction_lines("multilabel", values | {"labels": []}, top_k=0) == ["–\ta text"]


def test_a_value_is_shown_as_a_number() -> None:
    assert prediction_lines("regress", {"text": "a text", "value": 1234.5678}) == ["1234.57\ta text"]


def test_a_choice_is_shown_before_the_text() -> None:
    values = {"text": "it rained.", "start": "she", "choices": ["sang", "ran"], "choice": "ran", "index": 1}
    values |= {"score": 0.8, "scores": [0.2, 0.8]}
    assert prediction_lines("choose", values, top_k=2) == ["ran\t80.00%\tit rained. she", "  sang\t20.00%"]


def test_an_answer_is_shown_with_its_place() -> None:
    other = {"answer": "here", "start": 4, "end": 8, "score": 0.1}
    values = {"question": "where?", "answer": ARABIC, "start": 12, "end": 17, "score": 0.9, "alternatives": [other]}
    assert prediction_lines("answer", values) == [f"{ISOLATED}\t90.00%\t[12, 17)\twhere?"]
    assert prediction_lines("answer", values, top_k=5)[1:] == ["  here\t10.00%\t[4, 8)"]
    silent = values | {"answer": "", "start": 0, "end": 0}
    assert prediction_lines("answer", silent) == ["– no answer\t90.00%\twhere?"]


def test_entities_are_shown_where_they_stand() -> None:
    entities = [
        {"label": "PER", "text": "Ann Lee", "start": 0, "end": 7, "score": 0.9},
        {"label": "LOC", "text": ARABIC, "start": 17, "end": 22, "score": 0.8},
    ]
    values = {"text": f"Ann Lee lives in\n{ARABIC}.", "words": [], "entities": entities}
    shown, *listed = prediction_lines("tag", values)
    assert shown == f"\u2068[Ann Lee PER] lives in [{ISOLATED} LOC].\u2069"
    assert listed == ["  PER\t90.00%\t[0, 7)\tAnn Lee", f"  LOC\t80.00%\t[17, 22)\t{ISOLATED}"]


def test_plain_labels_of_words_are_shown_behind_them() -> None:
    words = [{"word": "a", "label": "DET", "score": 0.9}, {"word": "boat", "label": "NOUN", "score": 0.9}]
    assert prediction_lines("tag", {"text": "a boat", "words": words, "entities": []}) == ["a/DET  boat/NOUN"]
    outside = [word | {"label": "O"} for word in words]
    assert prediction_lines("tag", {"text": "a boat", "words": outside, "entities": []}) == ["a boat"]


def test_of_a_vector_the_first_numbers_are_shown() -> None:
    (line,) = prediction_lines("embed", {"text": "a text", "embedding": [0.5] * 20})
    assert line == f"[{'0.5000 ' * 6}…] 20 numbers\ta text"


def test_how_alike_texts_are_is_shown_of_a_few() -> None:
    lines = similarity_lines([[1.0, 0.0], [3.0, 4.0], [0.0, 0.0]])
    assert lines == ["  cosine of 1 and 2\t0.600", "  cosine of 1 and 3\t0.000", "  cosine of 2 and 3\t0.000"]
    assert similarity_lines([[1.0]]) == []
    assert similarity_lines([[1.0]] * 11) == []


@pytest.mark.parametrize("evaluation", [{}, {"per_class": {}, "worst_errors": []}])
def test_an_evaluation_without_details_shows_none(
    evaluation: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    show_details(evaluation)
    assert capsys.readouterr().out == ""


def test_classes_and_errors_of_an_evaluation_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    scores = {"precision": 0.5, "recall": 0.25, "f1": 1 / 3, "rows": 1200}
    error = {"place": "line 2", "text": "one", "pair": "two", "label": ARABIC, "predicted": "wet", "score": 0.9}
    show_details({"per_class": {"wet": scores, ARABIC: scores}, "worst_errors": [error]})
    shown = capsys.readouterr().out
    assert "  wet    precision  50.0%  recall  25.0%  F1  33.3%  1,200 rows" in shown
    assert f"  {ISOLATED}  precision" in shown
    assert f"  line 2: {ISOLATED} taken for wet (90%)\n      one\n      two\n" in shown


def test_labels_with_line_ends_break_no_line_of_an_evaluation(capsys: pytest.CaptureFixture[str]) -> None:
    scores = {"precision": 1.0, "recall": 1.0, "f1": 1.0, "rows": 3}
    error = {"place": "line 2", "text": "x", "label": "a\nb", "predicted": "c\td"}
    show_details({"per_class": {"a\nb": scores, "wet": scores}, "worst_errors": [error]})
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("  a\\nb  precision")
    assert lines[3].startswith("  wet   precision")
    assert "  line 2: a\\nb taken for c\\td" in lines


def test_a_label_with_a_line_break_or_a_tab_breaks_no_line() -> None:
    values = {"text": "red", "label": "a\nb", "score": 1.0, "scores": {"a\nb": 1.0, "c\td": 0.0}}
    assert prediction_lines("classify", values, top_k=2) == ["a\\nb\t100.00%\tred", "  c\\td\t0.00%"]
