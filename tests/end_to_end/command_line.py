"""The command line, run in this process, on a small text of two languages and a model of a few thousand weights."""

import contextlib
import io
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertsmith.cli.main import run as run_command_line
from bertsmith.model.packed import PackedTokens

_ANIMALS = ("cat", "dog", "horse", "sheep", "goat", "hen", "cow", "fox")
_PLACES = ("house", "garden", "river", "forest", "market", "bridge", "school", "field")
_VERBS = ("sees", "likes", "finds", "follows", "hears", "knows", "meets", "leaves")
_SYLLABLES = ("ba", "den", "fi", "gor", "hul", "ka", "lem", "mi", "nos", "pra", "ru", "sil", "ta", "ven", "wo", "zu")
_ARABIC_ANIMALS = ("القط", "الكلب", "الحصان", "الديك")
_ARABIC_PLACES = ("البيت", "الحديقة", "النهر", "السوق")
_GRAMMAR = re.compile(r"^error: \S.+\. Received: .+\. .+[.?`!]$", re.MULTILINE | re.DOTALL)
TINY_MODEL = {
    "model_type": "bert",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 48,
}
TINY_SETTINGS = (
    *("--max-length", "32", "--batch-tokens", "512", "--steps", "12", "--threads", "1", "--precision", "fp32"),
    *("--set", "corpus.workers=1", "--set", "training.log_every_steps=4"),
)


@dataclass(frozen=True)
class Outcome:
    """What a command left behind in the terminal."""

    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


def command(*arguments: object) -> Outcome:
    """Run `bertsmith ARGUMENTS` in this process, which spares the import of torch for each."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", ["bertsmith", *map(str, arguments)])
        patch.setenv("OMP_WAIT_POLICY", "PASSIVE")
        with pytest.raises(SystemExit) as ended:
            run_command_line()
    assert isinstance(ended.value.code, int)
    return Outcome(ended.value.code, out.getvalue(), err.getvalue())


def small_text(num_documents: int = 160) -> str:
    """English and Arabic documents of four sentences, the same every time."""
    documents: list[str] = []
    for number in range(num_documents):
        animal, other = _ANIMALS[number % 8], _ANIMALS[number // 3 % 8]
        place, verb = _PLACES[number // 2 % 8], _VERBS[number // 5 % 8]
        name = f"{_SYLLABLES[number % 16]}{_SYLLABLES[number * 7 % 16]}{_SYLLABLES[number // 16]}".capitalize()
        if number % 4 == 3:
            arabic, where = _ARABIC_ANIMALS[number // 4 % 4], _ARABIC_PLACES[number // 16 % 4]
            documents.append(f"ذهب {arabic} إلى {where}. ثم عاد {arabic} من {where}. رأى {arabic} صديقه هناك.")
        else:
            documents.append(
                f"The {animal} {verb} the {other} near the {place}. It rains on the {place} today.\n"
                f"The {other} waits for the {animal}. Then they go home to {name}."
            )
    return "\n\n".join(documents) + "\n"


@dataclass(frozen=True)
class FinishedRun:
    """A pre-training that has ended."""

    folder: Path
    arguments: tuple[str, ...]
    """Its command."""
    outcome: Outcome

    @property
    def model(self) -> Path:
        """Its model folder."""
        return self.folder / "model"


def pretraining(text: Path, model: Path, folder: Path, objective: str) -> tuple[str, ...]:
    """The command that pre-trains the tiny model for a dozen steps."""
    chosen = ("--out", folder, "--model", model, "--objective", objective)
    return tuple(map(str, ("pretrain", text, *chosen, *TINY_SETTINGS, "--json")))


def pretrained(text: Path, model: Path, folder: Path, objective: str) -> FinishedRun:
    """Run it."""
    arguments = pretraining(text, model, folder, objective)
    outcome = command(*arguments)
    assert outcome.code == 0, outcome.err
    return FinishedRun(folder, arguments, outcome)


def refused(outcome: Outcome, *parts: str) -> None:
    """Exit code 2, nothing on standard output, and a message in the grammar that holds `parts`."""
    assert outcome.code == 2, outcome
    assert outcome.out == ""
    assert _GRAMMAR.search(outcome.err.strip()), outcome.err
    assert "Traceback" not in outcome.err
    for part in parts:
        assert part in outcome.err


def one_sequence(token_ids: list[int], segment_ids: list[int]) -> PackedTokens:
    """A batch of a single sequence."""
    return PackedTokens.build(np.array(token_ids), np.array(segment_ids), np.array([0, len(token_ids)]))
