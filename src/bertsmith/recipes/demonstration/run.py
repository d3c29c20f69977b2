"""The demonstration: the documentation inside CPython becomes a BERT that fills masks in sentences about Python."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertsmith.inference.fill import FillPredictor
from bertsmith.recipes.demonstration.corpus import load_cloze, python_documentation
from bertsmith.recipes.predict import load_fill
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.run import pretrain_run
from bertsmith.recipes.results import Run
from bertsmith.recipes.settings import with_assignments
from bertsmith.recipes.text_sources import write_documents
from bertsmith.training.events import Observer

_TOP = 5
EXAMPLES = (
    "The [MASK] statement ends a loop.",
    "Return True if the object is an [MASK] of the class.",
    "If the file does not [MASK], an error is raised.",
    "The default [MASK] of the argument is None.",
)


@dataclass(frozen=True)
class Demonstration:
    """What the demonstration shows."""

    run: Run
    cloze_share: float
    """Share of the cloze lines whose answer is among the model's five best pieces."""
    common_words_share: float
    """Share whose answer is among the five commonest words of the text."""
    common_words: tuple[str, ...]
    examples: tuple[tuple[str, tuple[str, ...]], ...]
    """A sentence with a gap, and what the model puts there."""


def demo_run(
    out: str | Path,
    *,
    minutes: float,
    observers: Sequence[Observer] = (),
    notify: Callable[[str], None] = lambda message: None,
    started_at: float | None = None,
) -> Demonstration:
    """Train on Python's documentation, then ask the model about Python.

    Args:
        out: the folder of the run; its text is written there too.
        minutes: time for all of it.
        observers: as for pre-training.
        notify: as for pre-training.
        started_at: as for pre-training.
    """
    folder = Path(out)
    text = folder.with_name(f"{folder.name}-text") / "python.txt"
    if not text.is_file():
        text.parent.mkdir(parents=True, exist_ok=True)
        write_documents(python_documentation(), text)
    config = PretrainConfig.parse(demo_settings(text, minutes), where="the demonstration")
    run = pretrain_run(config, folder, observers=observers, notify=notify, started_at=started_at)
    predictor = load_fill(run.model_folder)
    common_words = _commonest_words(text)
    lines = load_cloze()
    found = predictor([line.text for line in lines], top_k=_TOP)
    hits = [line.answer in [best.token for best in mask.predictions] for line, mask in zip(lines, found, strict=True)]
    return Demonstration(
        run=run,
        cloze_share=sum(hits) / len(hits),
        common_words_share=sum(line.answer in common_words for line in lines) / len(lines),
        common_words=common_words,
        examples=_examples(predictor),
    )


def demo_settings(text: Path, minutes: float) -> dict[str, object]:
    """The settings of the demonstration's run."""
    return with_assignments(
        {"sources": [str(text)]},
        [
            f"length.minutes={minutes}",
            "max_length=64",
            "model.start=bert-demo",
            "tokenizer.vocab_size=4096",
            "tokenizer.lowercase=true",
            "masking.mask_rate=0.45",
            "training.batch_tokens=2048",
            "training.optimizer.learning_rate=3e-3",
            "training.optimizer.muon_learning_rate=0.02",
            "training.validation_tokens=30_000",
        ],
    )


def _commonest_words(text: Path) -> tuple[str, ...]:

    words = Counter(re.findall(r"[a-z]+", text.read_text(encoding="utf-8").lower()))
    return tuple(word for word, _ in words.most_common(_TOP))


def _examples(predictor: FillPredictor) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found = predictor(EXAMPLES, top_k=_TOP)
    return tuple((mask.text, tuple(word.token for word in mask.words)) for mask in found)
