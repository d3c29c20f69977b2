"""Checks what `bertsmith demo` has left: `python tests/end_to_end/check_demo.py runs/demo`.

It learned from context, the finished run is taken for finished, its model opens in transformers with equal logits, and
its report needs nothing from elsewhere.
"""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from bertsmith.folders.model_folder import read_model
from bertsmith.model.packed import PackedTokens
from bertsmith.recipes.demonstration.run import EXAMPLES
from bertsmith.tokenization.tokenizer import Tokenizer

LEAST_GAIN_NATS = 1.0
LEAST_GAIN_POINTS = 0.15
MOST_LOGIT_DIFFERENCE = 1e-4
_FROM_ELSEWHERE = re.compile(
    r"""(?:src|href|url|action)\s*[=(]\s*["']?\s*(?:https?:)?//|@import|<script|<link|<iframe""", re.IGNORECASE
)


def check(holds: bool, what: str) -> bool:
    """Tell whether something holds."""
    print(f"{'ok ' if holds else 'BAD'} {what}")
    return holds


def check_learning(run: Path) -> list[bool]:
    """The command given again finds the run finished, and tells how much it learned."""
    asked = subprocess.run(
        [sys.executable, "-m", "bertsmith", "demo", "--out", run, "--json"],
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    found = json.loads(asked.stdout)
    entropy = tomllib.loads((run / "run.toml").read_text(encoding="utf-8"))["record"]["train_entropy"]
    loss, reference = found["validation_loss"], min(entropy, found["context_free_loss"])
    cloze, common = found["cloze_top5"], found["cloze_top5_of_commonest_words"]
    return [
        check(loss <= reference - LEAST_GAIN_NATS, f"validation loss {loss:.3f}, without context {reference:.3f} nats"),
        check(cloze >= common + LEAST_GAIN_POINTS, f"cloze {cloze:.0%}, by the commonest words {common:.0%}"),
        check(len(found["examples"]) == len(EXAMPLES), f"{len(found['examples'])} examples"),
    ]


def check_transformers(model_folder: Path) -> list[bool]:
    """Ids and logits are those that transformers gives."""
    ours, our_tokenizer = read_model(model_folder).model.eval(), Tokenizer.from_folder(model_folder)
    theirs = AutoModelForMaskedLM.from_pretrained(model_folder).eval()
    their_tokenizer = AutoTokenizer.from_pretrained(model_folder)
    assert ours.masked_language_model is not None
    same_ids, differences = True, []
    for text in EXAMPLES:
        encoding = our_tokenizer.encode(text, mask_is_special=True)
        batch = their_tokenizer(text, return_tensors="pt")
        same_ids &= batch["input_ids"][0].tolist() == encoding.token_ids.tolist()
        ids = batch["input_ids"][0].numpy()
        packed = PackedTokens.build(ids, 0 * ids, torch.tensor([0, len(ids)]).numpy())
        with torch.inference_mode():
            logits = ours.masked_language_model(ours.head_input(packed))
            differences.append((logits - theirs(**batch).logits[0]).abs().max())
    difference = float(torch.stack(differences).max())
    return [
        check(same_ids, "ids are those of AutoTokenizer"),
        check(difference <= MOST_LOGIT_DIFFERENCE, f"logits differ from AutoModelForMaskedLM's by {difference:.1e}"),
    ]


def check_report(path: Path) -> list[bool]:
    """The page is there, and nothing in it is fetched from anywhere."""
    page = path.read_text(encoding="utf-8") if path.is_file() else ""
    foreign = _FROM_ELSEWHERE.findall(page)
    return [
        check("<svg" in page and "</html>" in page, f"{path.name} with its curves"),
        check(not foreign, f"{path.name} is self-contained {foreign or ''}".rstrip()),
    ]


def main() -> int:
    run = Path(sys.argv[1])
    held = [*check_learning(run), *check_transformers(run / "model"), *check_report(run / "report.html")]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
