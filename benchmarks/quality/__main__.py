"""One data set: models fine-tuned here and by transformers' Trainer, by several seeds, scored by one scorer.

    python -m benchmarks.quality NAME --task classify --train A.tsv --test B.tsv --model DIR --work DIR
        [--validation C.tsv] [--seeds 5] [--text COLUMN --label COLUMN --encoding E] [--arms ours peer …]

The arms. `ours`: the defaults here. `fresh`: the same from random weights, which shows what pre-training brings.
`peer`: transformers' Trainer with its own defaults. `ours_same`: those defaults here, and the model of the last step as
there. Every arm sees the same training rows, and is scored by `evaluate` on the test rows, which opens the Trainer's
folders as they are. What docs/experiments/quality/NAME.json has already is not run again, so that a comparison that was
stopped goes on, on another machine too.
"""

import argparse
import json
import time
import tomllib
from pathlib import Path
from typing import Any

import bertsmith
from benchmarks.measuring import machine
from benchmarks.quality.peer import PeerSettings, train_peer, trainer_defaults
from benchmarks.quality.results import ARMS, RESULTS, Runs, summary
from benchmarks.quality.rows import training_rows
from bertsmith.examples.table_config import TableConfig


def main() -> None:
    """Run what is missing; the JSON is written after each run."""
    args = _arguments()
    args.work.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{args.name}.json"
    runs: Runs = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.is_file() else {}
    for seed in range(args.seeds):
        for arm in args.arms:
            if f"{arm} {seed}" in runs:
                continue
            started_at = time.monotonic()
            score = _score(args, _trained(args, arm, seed))
            runs[f"{arm} {seed}"] = {"score": score, "seconds": round(time.monotonic() - started_at, 1)}
            print(arm, seed, runs[f"{arm} {seed}"], flush=True)
            values = {"name": args.name, "task": args.task, "score": args.score, "arms": summary(runs), "runs": runs}
            text = json.dumps({"machine": machine(), **values}, indent=2, ensure_ascii=False)
            RESULTS.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")


def _trained(args: argparse.Namespace, arm: str, seed: int) -> Path:
    """The model folder of an arm, trained now where it is not there."""
    if arm != "peer":
        return _ours(args, arm, seed) / "model"
    folder = args.work / f"peer-{seed}"
    _peer(args, folder, _ours(args, "ours_same", seed), seed)
    return folder


def _ours(args: argparse.Namespace, arm: str, seed: int) -> Path:
    """The run here; one that is finished is not run again."""
    settings = {f"data.{key}": value for key, value in _columns(args).items()}
    settings |= {"ours": {}, "fresh": {"fresh_weights": True}, "ours_same": trainer_defaults()}[arm]
    out = args.work / f"{arm}-{seed}"
    return bertsmith.finetune(
        args.task, args.train, model=args.model, out=out, validation=args.validation, seed=seed, settings=settings
    ).folder


def _peer(args: argparse.Namespace, folder: Path, ours: Path, seed: int) -> None:
    """The Trainer on the rows that ours was trained on."""
    record = tomllib.loads((ours / "run.toml").read_text(encoding="utf-8"))["record"]
    values = {"task": args.task, "train": args.train, "model": args.model, "data": _columns(args)}
    rows, labels = training_rows(values | ({} if args.validation is None else {"validation": args.validation}))
    settings = PeerSettings(seed, record["max_length"], record["precision"] == "bf16")
    train_peer(args.task, rows, labels, Path(args.model), folder, settings)


def _score(args: argparse.Namespace, folder: Path) -> float:
    table = TableConfig.parse(_columns(args), where="the options")
    return float(bertsmith.evaluate(folder, args.test, table=table, precision="fp32").metrics[args.score])


def _columns(args: argparse.Namespace) -> dict[str, Any]:
    given = {"text": args.text, "label": args.label, "encoding": args.encoding}
    return {name: value for name, value in given.items() if value is not None}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--task", choices=("classify", "tag", "answer"), default="classify")
    parser.add_argument("--score", default="accuracy", help="The score of `evaluate` that counts.")
    for name in ("train", "test", "model"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("validation", "text", "label", "encoding"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=["ours", "ours_same", "peer"])
    return parser.parse_args()


if __name__ == "__main__":
    main()
