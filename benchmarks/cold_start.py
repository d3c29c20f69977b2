"""From text to a trained model in one command, beside transformers' script for the same work.

    python -m benchmarks.cold_start TEXT [TEXT …] [--vocab-size N] [--rounds N]    # about a million tokens of text

Ours is `bertsmith pretrain TEXT --epochs 1`, all of it: the start of Python, a WordPiece tokenizer trained on the text,
the corpus, training, a validation at its end, the model's folder and the report. The peer is a script as transformers'
documentation advises it: a WordPiece tokenizer of `tokenizers`, `datasets.map` and blocks of 128 tokens as in
`benchmarks/preparing.py`, the collator for masked language models, and `Trainer` in fp32 on the CPU, which is its
default. Vocabulary, sizes of the model (L4 H128 A4), batches of 32 x 128 tokens, the share of masked tokens, the text,
and AdamW at the learning rate of `benchmarks/time_to_loss.py` are the same. Each passes over the text once, but for a
hundredth on which it is validated at the end: of the blocks for the peer, of the documents for ours, so there should be
many. Our kernels are compiled once for a machine, before the first turn; with `--compile`, in each of our turns.

Every twentieth document is held out from both. What they learnt is told by what a hidden character of it costs in nats,
since the pieces of two tokenizers cannot be compared: the same words are hidden from both, as in
`benchmarks/hidden_words.py`. The peer's training makes a round take a quarter of an hour or more.
"""

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

OURS, PEER = "bertsmith", "transformers"
_ASKED, _STEPS = "asked.json", "steps.json"
_HELD_OUT_EVERY = 20
_VALIDATION_SHARE = 0.01


def run_peer(work: Path, out: Path) -> None:
    """The peer's process, from its tokenizer to its folder."""
    import tokenizers
    import transformers

    from benchmarks.preparing import grouped, loaded

    asked = json.loads((work / _ASKED).read_text(encoding="utf-8"))
    text = work / "train-lines.txt"
    trained = tokenizers.BertWordPieceTokenizer(lowercase=False)
    trained.train([str(text)], vocab_size=asked["vocab_size"], min_frequency=0, show_progress=False)
    names = {f"{role}_token": f"[{role.upper()}]" for role in ("unk", "sep", "pad", "cls", "mask")}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=trained._tokenizer, **names)
    rows = grouped(loaded([text], tokenizer, asked["workers"]), asked["workers"])
    parts = rows.train_test_split(test_size=_VALIDATION_SHARE, seed=0)
    transformers.set_seed(0)
    padding = trained.token_to_id("[PAD]")
    config = transformers.BertConfig(vocab_size=len(tokenizer), pad_token_id=padding, **asked["sizes"])
    trainer = transformers.Trainer(
        model=transformers.BertForMaskedLM(config),
        args=transformers.TrainingArguments(
            output_dir=str(out / "checkpoints"),
            num_train_epochs=1,
            per_device_train_batch_size=asked["sequences"],
            learning_rate=asked["rate"],
            use_cpu=True,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            prediction_loss_only=True,
        ),
        train_dataset=parts["train"],
        eval_dataset=parts["test"],
        data_collator=transformers.DataCollatorForLanguageModeling(tokenizer, mlm_probability=asked["mask_rate"]),
    )
    trainer.train()
    trainer.evaluate()
    trainer.save_model(str(out / "model"))
    tokenizer.save_pretrained(out / "model")
    (out / _STEPS).write_text(json.dumps(trainer.state.global_step), encoding="utf-8")


def split_text(sources: Sequence[Path], work: Path) -> None:
    """Write what each trains on, and what is held out from both."""
    from bertsmith.recipes.text_sources import write_documents
    from bertsmith.text.documents import TextConfig, find_files, read_documents

    documents = list(read_documents(find_files([str(path) for path in sources]), TextConfig()))
    write_documents(documents[::_HELD_OUT_EVERY], work / "held-out.txt")
    train = [document for number, document in enumerate(documents) if number % _HELD_OUT_EVERY]
    write_documents(train, work / "train.txt")
    # A line is a row of the peer's, with special tokens around it: more lines than documents would cost it tokens.
    lines = "".join(f"{' '.join(document.text.split())}\n" for document in train)
    (work / "train-lines.txt").write_text(lines, encoding="utf-8", newline="\n")


def commands(work: Path, *, compiled_anew: bool) -> dict[str, Callable[[Path], Sequence[str]]]:
    """By name, what makes the command of each contestant."""
    asked = json.loads((work / _ASKED).read_text(encoding="utf-8"))
    settings = {
        "tokenizer.vocab_size": asked["vocab_size"],
        "masking.mask_rate": asked["mask_rate"],
        "training.optimizer.matrices": "same",
        "training.optimizer.learning_rate": asked["rate"],
        "corpus.validation_fraction": _VALIDATION_SHARE,
        "corpus.workers": asked["workers"],
        "training.validate_every_share": 1.0,
    }
    options = {
        "--model": "bert-toy",
        "--epochs": 1,
        "--max-length": asked["length"],
        "--batch-tokens": asked["length"] * asked["sequences"],
    }
    said = [str(part) for part in itertools.chain(*options.items())]
    said += [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]

    def ours(folder: Path) -> list[str]:
        cache = ["env", f"XDG_CACHE_HOME={folder / 'kept'}"] if compiled_anew else []
        program = [*cache, sys.executable, "-m", "bertsmith", "pretrain"]
        return [*program, str(work / "train.txt"), "--out", str(folder / "run"), *said]

    def peer(folder: Path) -> list[str]:
        return [sys.executable, "-m", "benchmarks.cold_start", "--contestant", str(work), str(folder / "run")]

    return {OURS: ours, PEER: peer}


def steps_of(name: str, run: Path) -> int:
    """How many steps a run took."""
    if name == PEER:
        return int(json.loads((run / _STEPS).read_text(encoding="utf-8")))
    return int(tomllib.loads((run / "run.toml").read_text(encoding="utf-8"))["record"]["steps"])


def measure(work: Path, *, rounds: int, compiled_anew: bool) -> dict[str, Any]:
    """Both in turn; the text and what is asked of both stand in `work`."""
    from benchmarks.hidden_words import hidden_words, nats_a_character
    from benchmarks.measuring import commands_in_turn, summary

    words = hidden_words((work / "held-out.txt").read_text(encoding="utf-8").splitlines())
    found: dict[str, dict[str, Any]] = {}

    def score(name: str, folder: Path) -> None:
        cost = round(nats_a_character(folder / "run" / "model", words), 4)
        found[name] = {"steps": steps_of(name, folder / "run"), "nats a hidden character": cost}

    turns = commands_in_turn(commands(work, compiled_anew=compiled_anew), rounds=rounds, warmup=0, seen=score)
    medians = {name: statistics.median(turn.seconds for turn in those) for name, those in turns.items()}
    return {
        "asked": json.loads((work / _ASKED).read_text(encoding="utf-8")),
        "hidden words": len(words),
        **{name: {**summary([turn.seconds for turn in turns[name]]), **found[name]} for name in turns},
        "times faster": round(medians[PEER] / medians[OURS], 1),
    }


def ask(work: Path, options: argparse.Namespace) -> None:
    """Write what both are to do."""
    from benchmarks.time_to_loss import LENGTH, RATE, SEQUENCES, SIZES
    from bertsmith.engine.device import choose_device, notes_on_kernels
    from bertsmith.recipes.text_sources import automatic_vocab_size

    split_text(options.sources, work)
    asked = {
        "vocab_size": options.vocab_size or automatic_vocab_size([work / "train.txt"]),
        "workers": options.workers,
        "sizes": SIZES,
        "length": LENGTH,
        "sequences": SEQUENCES,
        "mask_rate": 0.15,
        "rate": RATE,
    }
    (work / _ASKED).write_text(json.dumps(asked), encoding="utf-8")
    for note in notes_on_kernels(choose_device("cpu")):  # Which compiles them where that is not done.
        print(note, file=sys.stderr)


def main() -> None:
    """Measure, print and write; or be the peer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", type=Path, help="text, in files and folders")
    parser.add_argument("--vocab-size", type=int, help="by the size of the text where not given")
    parser.add_argument("--workers", type=int, default=2, help="processes that prepare the text")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--name", help="of the text, in the JSON; that of the first source where not given")
    parser.add_argument("--compile", action="store_true", help="let each of our turns compile the kernels")
    parser.add_argument("--contestant", type=Path, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contestant:
        run_peer(*options.contestant)
        return
    if not options.sources:
        parser.error("name text, about a million tokens of it")
    from benchmarks.measuring import write_part

    with tempfile.TemporaryDirectory() as name:
        ask(Path(name), options)
        values = measure(Path(name), rounds=options.rounds, compiled_anew=options.compile)
    write_part("cold_start", options.name or options.sources[0].stem, values)


if __name__ == "__main__":
    main()
