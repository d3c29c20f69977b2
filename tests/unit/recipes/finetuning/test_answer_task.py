"""The task answer: from files of questions to a model folder that answers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finetune_parts import assert_refused, config_of

import bertsmith
from bertsmith.examples.answering import AnswerExamples
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.folders.model_folder import read_model
from bertsmith.foundation.errors import InputError
from bertsmith.inference.answer import AnswerPredictor
from bertsmith.model import HeadsConfig
from bertsmith.model.config import AnsweringHead
from bertsmith.recipes.finetuning.data import task_data
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.run import finetune_run
from bertsmith.recipes.finetuning.task import Task, TaskRows
from bertsmith.recipes.finetuning.tasks.answer import Answer
from bertsmith.recipes.results import Run
from bertsmith.text.questions import GoldAnswer
from made_corpora import made_tokenizer
from made_questions import asked, made_answerer, made_questions, made_sign_questions, squad, write_squad
from made_tasks import made_encoder

TASK = Answer()
CONTEXT = "The old boat waited under the bridge."
MIXED = squad(
    (CONTEXT, [asked("What waited?", ("old boat", 4), ("boat", 8), name="1"), asked("Who slept?", name="2")]),
    ("Rain fell. " * 30, [asked("What fell?", ("Rain", 0), name="3"), asked("What rose?", name="4")]),
)


def _read(folder: Path, document: dict[str, Any]) -> TaskRows:
    path = write_squad(folder / "questions.json", document)
    return TASK.read(path, TableConfig(), like=None, options=OptionNames())


def _heads(**more: Any) -> HeadsConfig:
    return HeadsConfig(masked_language_model=False, task="answer", answering=AnsweringHead(**more))


def _examples(rows: TaskRows, heads: HeadsConfig, *, max_length: int = 40) -> AnswerExamples:
    return TASK.examples(rows, (), made_tokenizer(), max_length=max_length, long_texts="head", heads=heads)


def _config(work: Path, **more: Any) -> FinetuneConfig:
    return config_of(work, **({"task": "answer", "train": str(work / "train.json"), "length": {"steps": 4}} | more))


def _certain(examples: AnswerExamples) -> np.ndarray:
    """Outputs of a model that knows every target."""
    outputs = np.zeros((len(examples.token_ids), 2), np.float32)
    for start, (first, last) in zip(examples.sequence_starts[:-1], examples.targets, strict=True):
        outputs[start + first, 0] = outputs[start + last, 1] = 30.0
    return outputs


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder and questions, of which some have no answer."""
    folder = tmp_path_factory.mktemp("answer")
    made_encoder(folder / "encoder")
    write_squad(folder / "train.json", made_questions(60, none=0.3))
    write_squad(folder / "validation.json", made_questions(20, none=0.3, seed=1))
    return folder


@pytest.fixture(scope="module")
def run(work: Path) -> Run:
    """A few steps."""
    settings = {"answer": {"overlap": 5, "max_question": 4}, "validation": str(work / "validation.json")}
    return finetune_run(_config(work, max_length=24, **settings), work / "run")


def test_it_is_a_task_whose_scores_depend_on_whether_all_can_be_answered(tmp_path: Path) -> None:
    assert isinstance(TASK, Task)
    rows = _read(tmp_path, MIXED)
    assert next(iter(TASK.metrics(rows, ()))) == "best_f1"
    assert TASK.strata(rows, ()).tolist() == [0, 1, 0, 1]
    assert TASK.facts(rows, ()) == {"texts": 2, "unanswerable_rows": 2}
    assert "2 of 4 questions have no answer" in TASK.notes(rows, ())[0]
    some = rows.some(np.array([0, 2]))
    assert TASK.metrics(some, ()) == {"f1": "higher", "exact_match": "higher", "loss": "lower"}
    assert "will always give one" in TASK.notes(some, ())[0]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"class_weights": "balanced"}, "class_weights must be none for answer: answers have no classes"),
        ({"long_texts": "windows"}, "long_texts must be head or tail: texts are read in windows always"),
    ],
)
def test_settings_that_would_do_nothing_are_refused(
    work: Path, tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    assert_refused(_config(work, **changes), tmp_path / "run", told)


def test_questions_without_any_answer_are_refused(tmp_path: Path) -> None:
    rows = _read(tmp_path, squad((CONTEXT, [asked("Who?"), asked("Who sailed?", ("ship", 3))])))
    with pytest.raises(InputError, match=r"must have an answer that stands in its text.*none of 2"):
        TASK.labels(rows)
    assert TASK.labels(_read(tmp_path, MIXED)) == ()


def test_a_model_that_knows_every_target_is_right_and_one_that_knows_none_is_wrong(tmp_path: Path) -> None:
    rows, heads = _read(tmp_path, MIXED), _heads(unanswerable=True)
    examples = _examples(rows, heads)
    assert len(examples) > 4
    found = TASK.evaluation(_certain(examples), examples, rows, heads)
    assert {name: found[name] for name in ("rows", "exact_match", "f1", "best_f1", "no_answer_exact")} == {
        "rows": 4, "exact_match": 1.0, "f1": 1.0, "best_f1": 1.0, "no_answer_exact": 1.0,
    }  # fmt: skip
    assert found["loss"] == pytest.approx(0.0, abs=1e-6)
    assert found["worst_errors"] == []
    always = TASK.evaluation(_certain(examples), examples, rows, _heads())
    assert (always["exact_match"], always["no_answer_exact"]) == (0.5, 0.0)
    blind = TASK.evaluation(-_certain(examples), examples, rows, heads)
    assert blind["exact_match"] == 0.0
    errors = blind["worst_errors"]
    assert len(errors) == 4
    assert {error["place"] for error in errors} == {question.place for question in rows.items}
    by_place = {error["place"]: error for error in errors}
    assert by_place["question 1 (id 1)"]["label"] == "old boat / boat"
    assert by_place["question 2 (id 2)"]["label"] == "(no answer)"
    assert by_place["question 1 (id 1)"]["pair"] == CONTEXT
    assert by_place["question 3 (id 3)"]["pair"].endswith("…")
    assert len(by_place["question 3 (id 3)"]["pair"]) < 160
    json.dumps(blind)


def test_a_lost_answer_still_counts_as_right_and_is_not_in_the_loss(tmp_path: Path) -> None:
    document = squad((CONTEXT, [asked("What?", ("the bridge!", 3)), asked("Who?", ("old boat", 4))]))
    rows, heads = _read(tmp_path, document), _heads()
    examples = _examples(rows, heads)
    outputs = np.zeros((len(examples.token_ids), 2), np.float32)
    for row, answer in ((0, "bridge"), (1, "old boat")):
        at = CONTEXT.index(answer)
        windows, start = examples.windows[row], int(examples.sequence_starts[row])
        span = windows.context.tokens_of(GoldAnswer(answer, at, at + len(answer)))
        assert span is not None
        outputs[start + windows.parts[0].place + span[0], 0] = 30.0
        outputs[start + windows.parts[0].place + span[1], 1] = 30.0
    found = TASK.evaluation(outputs, examples, rows, heads)
    assert found["exact_match"] == 1.0
    assert found["loss"] == pytest.approx(0.0, abs=1e-6)


def test_validation_decides_from_when_on_no_answer_is_given(tmp_path: Path) -> None:
    rows = _read(tmp_path, MIXED)
    for head, decides in (
        (AnsweringHead(unanswerable=True), True),
        (AnsweringHead(unanswerable=True, no_answer_threshold=0.25), False),
        (AnsweringHead(), False),
    ):
        model = made_answerer(head)
        examples = _examples(rows, model.config.heads)
        settled = TASK.settle(_certain(examples), examples, rows, model).answering
        assert settled is not None
        if decides:
            assert settled.no_answer_threshold is not None
            heads = model.config.heads.model_copy(update={"answering": settled})
            found = TASK.evaluation(_certain(examples), examples, rows, heads)
            assert found["f1"] == found["best_f1"] == 1.0
        else:
            assert settled == head
    foreign = made_answerer(None)
    assert TASK.settle(np.empty((0, 2), np.float32), examples, rows, foreign) == foreign.config.heads


def test_the_settled_threshold_is_no_questions_probability(tmp_path: Path) -> None:
    rows, model = _read(tmp_path, MIXED), made_answerer(AnsweringHead(unanswerable=True))
    examples = _examples(rows, model.config.heads)
    outputs = _certain(examples) * 0.2
    settled = TASK.settle(outputs, examples, rows, model).answering
    assert settled is not None
    assert settled.threshold is not None
    report = TASK.evaluation(outputs, examples, rows, model.config.heads)
    decided = TASK.evaluation(outputs, examples, rows, _heads(**settled.model_dump()))
    assert decided["f1"] == report["best_f1"]
    assert settled.threshold > report["best_f1_threshold"] + 1e-3
    broken = np.full_like(outputs, np.nan)
    assert TASK.settle(broken, examples, rows, model) == model.config.heads
    assert np.isnan(TASK.evaluation(broken, examples, rows, model.config.heads)["best_f1"])


def _several(count: int, *, each: int = 4) -> dict[str, Any]:
    """Texts with several questions each, of which one has no answer."""
    parts: list[tuple[str, list[dict[str, Any]]]] = []
    for number in range(count):
        right = [asked(f"What {which} waited?", ("old boat", 4), name=f"{number}-{which}") for which in range(each - 1)]
        parts.append((f"{CONTEXT} {number}", [*right, asked("Who slept?", name=f"{number}-none")]))
    return squad(*parts)


def test_all_questions_about_a_text_are_held_out_together(work: Path, tmp_path: Path) -> None:
    train = write_squad(tmp_path / "train.json", _several(30))
    data = task_data(TASK, _config(work, train=str(train)))
    texts = [{question.context for question in part.items} for part in (data.train, data.validation)]
    assert not texts[0] & texts[1]
    assert len(data.validation.items) == 12
    assert sum(question.is_impossible for question in data.validation.items) == 3
    assert "12 of 120 rows are held out" in "; ".join(data.notes)
    assert not any("about a text that training has" in note for note in data.notes)


def test_validation_questions_about_texts_of_training_are_counted(work: Path, tmp_path: Path) -> None:
    train = write_squad(tmp_path / "train.json", _several(3))
    other = squad((f"{CONTEXT} 1", [asked("Where?", ("bridge", 30))]), ("Snow.", [asked("What?", ("Snow", 0))]))
    validation = write_squad(tmp_path / "dev.json", other)
    data = task_data(TASK, _config(work, train=str(train), validation=str(validation)))
    assert any("1 of 2 validation rows is about a text that training has" in note for note in data.notes)
    alone = task_data(TASK, _config(work, train=str(write_squad(tmp_path / "one.json", _several(1, each=20)))))
    assert any("2 of 2 validation rows are about a text that training has" in note for note in alone.notes)


def test_a_file_without_answers_is_not_evaluated_as_one_that_has_none(work: Path, run: Run, tmp_path: Path) -> None:
    document = squad((CONTEXT, [{"id": "1", "question": "What waited?"}]))
    path = write_squad(tmp_path / "test.json", document)
    with pytest.raises(InputError, match=r"need answers.*test\.json, whose questions hold id, question, context"):
        bertsmith.evaluate(run.model_folder, str(path), device="cpu")
    assert_refused(
        _config(work, validation=str(path)),
        tmp_path / "run",
        r"the columns id, question, context, and without answers",
    )


def test_a_threshold_without_questions_to_use_it_on_is_refused(work: Path, tmp_path: Path) -> None:
    train = write_squad(tmp_path / "train.json", made_questions(20))
    settings = {"train": str(train), "answer": {"no_answer_threshold": 0.3}}
    assert_refused(
        _config(work, **settings),
        tmp_path / "run",
        r"no_answer_threshold needs training questions without an answer.*each of",
    )
    heads = TASK.heads(_read(tmp_path, MIXED), (), _config(work, **settings))["answering"]
    assert (heads.no_answer_threshold, heads.unanswerable) == (0.3, True)


def test_a_run_leaves_a_folder_that_answers_as_it_was_trained(work: Path, run: Run) -> None:
    heads = read_model(run.model_folder).model.config.heads
    assert heads.task == "answer"
    assert heads.answering is not None
    assert (heads.answering.overlap, heads.answering.max_question, heads.answering.unanswerable) == (5, 4, True)
    assert heads.answering.no_answer_threshold is not None
    assert next(iter(run.metrics)) == "best_f1"
    answer = bertsmith.load(run.model_folder, device="cpu", precision="fp32")
    assert isinstance(answer, AnswerPredictor)
    assert answer.max_length == 24
    (found,) = answer([("river", CONTEXT)])
    assert found.answer == CONTEXT[found.start : found.end]


def test_it_learns_where_answers_stand_and_which_questions_have_none(work: Path, tmp_path: Path) -> None:
    train = write_squad(tmp_path / "train.json", made_sign_questions(240))
    settings = {"train": str(train), "length": {"epochs": 12}, "answer": {"overlap": 4}, "max_length": 32}
    learned = finetune_run(_config(work, **settings), tmp_path / "run")
    assert learned.metrics["f1"] > 0.9
    assert learned.metrics["no_answer_exact"] > 0.8
    answer = bertsmith.load(learned.folder, device="cpu", precision="fp32")
    assert isinstance(answer, AnswerPredictor)
    rows = _read(tmp_path, made_sign_questions(60, seed=1))
    golds = ["" if question.is_impossible else question.answers[0].text for question in rows.items]
    found = [prediction.answer for prediction in answer([question.key for question in rows.items])]
    assert sum(one == other for one, other in zip(found, golds, strict=True)) > 50


def test_evaluating_the_folder_gives_the_runs_scores(work: Path, run: Run) -> None:
    report = bertsmith.evaluate(run.model_folder, str(work / "validation.json"), device="cpu", precision="fp32")
    for name, value in run.metrics.items():
        assert report.metrics[name] == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"answer": {"overlap": 19}, "max_length": 24}, "answer.overlap must be smaller"),
        ({"answer": {"max_question": 60}, "max_length": 24}, "leave room for a text"),
        (
            {"max_length": 8},
            r"leave 8 tokens for a question.*8, which leaves 2 for .*Use --max-length 32 or more",
        ),
        ({"max_length": 31}, "Use --max-length 32 or more"),
        (
            {"answer": {"max_question": 8}, "max_length": 26},
            r"for a question and 15 .*smaller answer\.max_question",
        ),
        ({"answer": {"overlap": -1}}, "answer.overlap"),
        ({"answer": {"stride": 12}}, "stride.*overlap"),
        ({"answer": {"scorer": "mlqa-fr"}}, "answer.scorer.*mlqa-ar"),
        ({"answer": {"no_answer_threshold": 2.0}}, "answer.no_answer_threshold"),
        (
            {"answer": {}, "task": "classify"},
            "settings answer.… belong to task answer alone.*answer, and task classify",
        ),
        ({"data": {"strict": True}, "train": "TRAIN"}, "answers must stand at their offsets"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_and_leave_nothing(
    work: Path, tmp_path: Path, settings: dict[str, Any], said: str
) -> None:
    if settings.get("train"):
        bad = squad((CONTEXT, [asked("What?", ("boat", 3)), asked("Who?", ("boat", 8))]))
        settings = settings | {"train": str(write_squad(tmp_path / "bad.json", bad))}
    with pytest.raises(InputError, match=said):
        finetune_run(_config(work, **settings), tmp_path / "run")
    assert not (tmp_path / "run").exists()
