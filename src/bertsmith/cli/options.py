"""Options that several commands have, each spelled once. Of a training, None says that an option was not given."""

from pathlib import Path
from typing import Annotated

import typer

_DEVICE = typer.Option(help="auto, cpu, cuda …")
_PRECISION = typer.Option(help="auto, fp32 or bf16.")
_PRECISION_OF_USE = typer.Option(
    help="auto, fp32, bf16, or int8 on a CPU: the fastest, and refused where it predicts something else on these texts."
)
_ENGINE = typer.Option(
    help="auto, torch, or onnx: the graph that export put into the folder. Of both, auto takes the faster for a file."
)

Json = Annotated[bool, typer.Option("--json", help="Print results as JSON lines.")]
Folder = Annotated[Path, typer.Argument(help="A model folder, or a finished run.")]
Predicting = Annotated[Path, typer.Argument(help="A model folder, a finished run, or an exported folder.")]
Device = Annotated[str, _DEVICE]
Precision = Annotated[str, _PRECISION]
PrecisionOfUse = Annotated[str, _PRECISION_OF_USE]
Engine = Annotated[str, _ENGINE]

TrainingText = Annotated[
    list[str] | None,
    typer.Argument(help="Text files; folders, of which every text and table is taken; or one prepared corpus."),
]
RunFolder = Annotated[Path, typer.Option(help="Folder of the run. The same command again goes on there.")]
Epochs = Annotated[float | None, typer.Option(help="Passes over the text; 3 if no length is given.")]
EpochsOfRows = Annotated[
    float | None,
    typer.Option(
        "--epochs", help="Passes over the rows. If no length is given: 3, and for few rows or many labels up to 20."
    ),
]
Steps = Annotated[int | None, typer.Option(help="Steps of a training.")]
Minutes = Annotated[float | None, typer.Option(help="Time for all of it, preparation included.")]
Settings = Annotated[
    Path | None,
    typer.Option(help="Settings as TOML, such as a run's run.toml; of a pre-training also by name: bert-base …"),
]
Assignments = Annotated[list[str] | None, typer.Option("--set", help="key=value, over all else.")]
MaxLength = Annotated[int | None, typer.Option(help="Most tokens of a sequence.")]
BatchTokens = Annotated[int | None, typer.Option(help="Tokens of a step.")]
Seed = Annotated[int | None, typer.Option(help="Decides fresh weights, order and draws.")]
TrainingDevice = Annotated[str | None, _DEVICE]
TrainingPrecision = Annotated[str | None, _PRECISION]
Threads = Annotated[int | None, typer.Option(help="Threads for computing.")]
Restart = Annotated[bool, typer.Option("--restart", help="Remove an earlier run in --out first.")]
