"""One data set: models fine-tuned here and by transformers' Trainer, by several seeds, scored by one scorer.

    python -m benchmarks.quality NAME --task classify --train A.tsv --test B.tsv --model DIR --work DIR
        [--validation C.tsv] [--seeds 5] [--text COLUMN --label COLUMN --encoding E] [--arms ours peer …]

The arms. `ours`: the defaults here. `fresh`: the same from random weights, which shows what pre-training brings.
`ours_last` and `peer_same`: the same settings on both sides, and the model of the last step, which for ours is the last
checkpoint of `ours`. `peer`: the Trainer's own defaults. Every arm sees the same training rows, and is scored by
`evaluate` on the test rows, which opens the Trainer's folders as they are. The results so far are read again from
--work, so that a run that was stopped goes on.
"""

import argparse
import json
import math
import statistics
import time
import tomllib
from pathlib import Path
from typing import Any

import bertsmith
from benchmarks.measuring import machine
from benchmarks.quality.peer import PeerSettings, train_peer
from benchmarks.quality.rows import training_rows
from bertsmith.examples.table_config import TableConfig

RESULTS = Path(__file__).parent.parent.parent / "docs" / "experiments" / "quality"
ARMS = ("ours", "ours_last", "peer_same", "peer", "fresh")


def main() -> None:
    """Run what is missing, and write the JSON."""
    args = _arguments()
    args.work.mkdir(parents=True, exist_ok=True)
    done = args.work / "scores.json"
    found: dict[str, Any] = json.loads(done.read_text(encoding="utf-8")) if done.is_file() else {}
    for seed in range(args.seeds):
        for arm in args.arms:
            if f"{arm} {seed}" in found:
                continue
            started_at = time.monotonic()
            ours = _ours(args, seed, fresh=arm == "fresh")
            if arm in ("ours", "fresh"):
                folder = ours / "model"
            elif arm == "ours_last":
                folder = max((ours / "checkpoints").glob("step-*"))
            else:
                folder = args.work / f"{arm}-{seed}"
                _peer(args, folder, ours, seed, same=arm == "peer_same")
            score = _score(args, folder)
            found[f"{arm} {seed}"] = {"score": score, "seconds": round(time.monotonic() - started_at, 1)}
            done.write_text(json.dumps(found, indent=2), encoding="utf-8")
            print(arm, seed, found[f"{arm} {seed}"], flush=True)
    _write(args, found)


def _ours(args: argparse.Namespace, seed: int, *, fresh: bool) -> Path:
    """The run here; one that is finished is not run again."""
    settings = {f"data.{key}": value for key, value in _columns(args).items()} | {"fresh_weights": fresh}
    out = args.work / f"{'fresh' if fresh else 'ours'}-{seed}"
    return bertsmith.finetune(
        args.task, args.train, model=args.model, out=out, validation=args.validation, seed=seed, settings=settings
    ).folder


def _peer(args: argparse.Namespace, folder: Path, ours: Path, seed: int, *, same: bool) -> None:
    """The Trainer on the rows that ours was trained on."""
    run = tomllib.loads((ours / "run.toml").read_text(encoding="utf-8"))
    record, training = run["record"], run["training"]
    values = {"task": args.task, "train": args.train, "model": args.model, "data": _columns(args)}
    rows, labels = training_rows(values | ({} if args.validation is None else {"validation": args.validation}))
    arguments: dict[str, Any] = {}
    if same:
        optimizer, schedule = training["optimizer"], training["schedule"]
        arguments = {
            "max_steps": record["steps"],
            "per_device_train_batch_size": record["batch_size"],
            "learning_rate": record["learning_rate"],
            "warmup_steps": round(schedule["warmup_share"] * record["steps"]),
            "weight_decay": optimizer["weight_decay"],
            "adam_beta1": optimizer["beta1"],
            "adam_beta2": optimizer["beta2"],
            "adam_epsilon": optimizer["eps"],
            "max_grad_norm": optimizer["clip_norm"],
        }
    settings = PeerSettings(seed, record["max_length"], record["precision"] == "bf16", arguments)
    train_peer(args.task, rows, labels, Path(args.model), folder, settings)


def _score(args: argparse.Namespace, folder: Path) -> float:
    table = TableConfig.parse(_columns(args), where="the options")
    return float(bertsmith.evaluate(folder, args.test, table=table, precision="fp32").metrics[args.score])


def _write(args: argparse.Namespace, found: dict[str, Any]) -> None:
    arms: dict[str, Any] = {}
    for arm in ARMS:
        scores = [entry["score"] for name, entry in found.items() if name.rsplit(" ", 1)[0] == arm]
        if scores:
            seconds = [entry["seconds"] for name, entry in found.items() if name.rsplit(" ", 1)[0] == arm]
            arms[arm] = {
                "scores": scores,
                "mean": statistics.fmean(scores),
                "standard_error": statistics.stdev(scores) / math.sqrt(len(scores)) if len(scores) > 1 else None,
                "median_seconds": statistics.median(seconds),
            }
    values = {"name": args.name, "task": args.task, "score": args.score, "seeds": args.seeds, "arms": arms}
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"machine": machine(), **values}, indent=2, ensure_ascii=False)
    (RESULTS / f"{args.name}.json").write_text(text + "\n", encoding="utf-8")
    print(text)


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
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=["ours", "ours_last", "peer_same", "peer"])
    return parser.parse_args()


if __name__ == "__main__":
    main()
