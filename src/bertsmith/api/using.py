"""Opening and judging models."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bertsmith.examples.table_config import TableConfig
from bertsmith.recipes.evaluate import evaluate_run
from bertsmith.recipes.predict import load as load_fitting
from bertsmith.recipes.results import Report

if TYPE_CHECKING:

    class LoadedPredictor(Protocol):
        """The predictor that fits a folder. Which one it is, and so what it gives, only the folder tells."""

        def __call__(self, items: Any, /, **options: Any) -> list[Any]: ...

        def __getattr__(self, name: str) -> Any: ...

else:
    # What only a reader of types needs: no predictor has these two methods in this form.
    LoadedPredictor = Any


def load(
    folder: str | Path,
    *,
    device: str = "auto",
    precision: str = "fp32",
    engine: str = "auto",
    judge_on: Sequence[Any] = (),
    notify: Callable[[str], object] = lambda message: None,
) -> LoadedPredictor:
    """The predictor that fits a model folder, the finished model of a run, or an exported folder. An encoder without
    any head embeds.

    Called with an item or a list of items, it gives a list: `fill` a prediction for each mask, all others one for each
    item, each a frozen object with the fields of the command's JSON.

    Args:
        folder: a model folder, a run folder or an exported folder.
        device: where it runs.
        precision: ``fp32``, ``bf16``, ``int8``, or ``auto``: fp32 or bf16, whichever a probe finds faster. In bf16 a
            result may move by 2 %. ``int8`` is for a CPU, and is refused where it predicts something else.
        engine: ``torch`` for a model's weights; ``onnx`` for an exported folder, or the graph that was exported into a
            model folder; ``auto`` for what there is, and of both on a CPU whichever a probe finds faster.
        judge_on: texts, or whatever the predictor takes, by which a model in int8 is judged: up to 256 of them.
        notify: is told how a model in int8 was judged, and which engine runs where there were two to choose from.

    Raises:
        InputError: if it is no such folder, there is no graph of its model for ``onnx``, or the model does in int8 not
            predict what it predicts in fp32.
    """
    found: Any = load_fitting(
        folder, device=device, precision=precision, engine=engine, judge_on=judge_on, notify=notify
    )
    return found


def evaluate(
    folder: str | Path,
    source: str | Path,
    *,
    max_length: int | None = None,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    encoding: str | None = None,
    table: TableConfig | None = None,
    device: str = "auto",
    precision: str = "auto",
    out: str | Path | None = None,
    notify: Callable[[str], None] = lambda message: None,
) -> Report:
    """Evaluate what a model does.

    A masked language model: loss, accuracy and perplexity on text, 15 % of it hidden by a fixed draw. A causal one or
    an ELMo: the same of every next token, and for the ELMo of every one before too. A fine-tuned model: the scores of
    its task, each class, the confusion counts and the worst errors, on labelled rows.

    Args:
        folder: a model folder or a run.
        source: a text file or folder, or a prepared corpus, whose validation part is then used; for a fine-tuned
            model, a file of rows.
        max_length: tokens of a sequence; what the model was trained with, and for a language model 512 at most, where
            not given.
        text: column of the text; guessed where not given. The next three are of rows alone.
        pair: column of the second text; guessed where not given.
        label: column of what is to be found; guessed where not given.
        encoding: of the file; UTF-8 where not given.
        table: what else there is to say of how rows are read; the four before stand over it.
        device: where it runs.
        precision: ``auto``, ``fp32`` or ``bf16``.
        out: a folder into which evaluation.json, report.html and, where there are classes, confusion.png and errors.tsv
            are written.
        notify: is told in a line what of that could not be drawn.

    Raises:
        InputError: if the model has no head to evaluate, something of rows is said for a language model, the text or
            rows cannot be read, a label is unknown to the model, or `out` holds what must stay.
    """
    given = {"text": text, "pair": pair, "label": label, "encoding": encoding}
    given = {name: value for name, value in given.items() if value is not None}
    rows = TableConfig.parse((table or TableConfig()).model_dump() | given, where="the arguments")
    return evaluate_run(
        folder,
        source,
        max_length=max_length,
        table=rows,
        device=device,
        precision=precision,
        out=out,
        notify=notify,
    )
