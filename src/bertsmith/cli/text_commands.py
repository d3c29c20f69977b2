"""Commands on text: training a tokenizer, preparing and verifying a corpus."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from bertsmith.cli.options import Json
from bertsmith.cli.output import note, result
from bertsmith.foundation.errors import InputError

Sources = Annotated[
    list[str], typer.Argument(help="Files and folders: .txt, .jsonl, .csv, .tsv, .parquet, also .gz, .zst.")
]
Layout = Annotated[str, typer.Option("--layout", help="Documents of a .txt: blank_line, line or file.")]
TextColumn = Annotated[str | None, typer.Option("--text", help="Column that holds the text; guessed where not given.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    tokenizer = typer.Typer(no_args_is_help=True)
    tokenizer.command("train")(train)
    tokenizer.command("report")(report)
    app.add_typer(tokenizer, name="tokenizer", help="Train a tokenizer, or see how well one fits a text.")
    app.command("prepare")(prepare)
    app.command("verify")(verify)


def train(
    sources: Sources,
    out: Annotated[Path, typer.Option(help="The tokenizer's folder, new or empty.")],
    algorithm: Annotated[str, typer.Option(help="wordpiece, bpe or unigram.")] = "wordpiece",
    vocab_size: Annotated[
        int | None, typer.Option(help="Pieces, special ones included; by text size if not given.")
    ] = None,
    lowercase: Annotated[bool, typer.Option("--lowercase/--no-lowercase", help="Write every letter small.")] = False,
    strip_accents: Annotated[
        bool, typer.Option("--strip-accents/--keep-accents", help="Take accents off Latin, Greek, Cyrillic.")
    ] = False,
    strip_vowel_marks: Annotated[
        bool, typer.Option("--strip-vowel-marks/--keep-vowel-marks", help="Remove Arabic harakat, Hebrew points.")
    ] = False,
    strip_tatweel: Annotated[
        bool, typer.Option("--strip-tatweel/--keep-tatweel", help="Remove the Arabic letter stretcher.")
    ] = False,
    layout: Layout = "blank_line",
    text: TextColumn = None,
    as_json: Json = False,
) -> None:
    """Train a tokenizer on your text.

    Example: bertsmith tokenizer train news/ --out my-tokenizer --vocab-size 16000
    """
    from bertsmith.recipes.train_tokenizer import train_tokenizer_run
    from bertsmith.text.documents import TextConfig
    from bertsmith.tokenization.config import TokenizerConfig

    values: dict[str, object] = {
        "algorithm": algorithm,
        "lowercase": lowercase,
        "strip_accents": strip_accents,
        "strip_vowel_marks": strip_vowel_marks,
        "strip_tatweel": strip_tatweel,
    }
    if vocab_size is not None:
        values["vocab_size"] = vocab_size
    config = TokenizerConfig.parse(values, where="the options")
    reading = TextConfig.parse({"layout": layout, "text_column": text}, where="the options")
    tokenizer = train_tokenizer_run(sources, out, config, reading)
    found = {"folder": str(out), "vocab_size": tokenizer.vocab_size}
    if tokenizer.summary is not None:
        found |= tokenizer.summary.model_dump()
    result(found, as_json=as_json)


def report(
    folder: Annotated[Path, typer.Argument(help="A tokenizer's folder.")],
    sources: Sources,
    layout: Layout = "blank_line",
    text: TextColumn = None,
    as_json: Json = False,
) -> None:
    """Pieces a word, unknown share and longest words of a text, by script.

    Example: bertsmith tokenizer report my-tokenizer news/
    """
    from bertsmith.cli.tables import script_table
    from bertsmith.recipes.train_tokenizer import report_tokenizer_run
    from bertsmith.text.documents import TextConfig

    reading = TextConfig.parse({"layout": layout, "text_column": text}, where="the options")
    found = report_tokenizer_run(folder, sources, reading)
    if as_json:
        result(asdict(found), as_json=True)
    else:
        script_table(found)


def prepare(
    sources: Sources,
    tokenizer: Annotated[Path, typer.Option(help="A tokenizer's folder.")],
    out: Annotated[Path, typer.Option(help="The corpus's folder, new or empty.")],
    validation: Annotated[float, typer.Option(help="Share of the documents that is held out.")] = 0.05,
    workers: Annotated[int | None, typer.Option(help="Processes that tokenize; all cores if not given.")] = None,
    seed: Annotated[int, typer.Option(help="Decides which documents are held out.")] = 0,
    layout: Layout = "blank_line",
    text: TextColumn = None,
    as_json: Json = False,
) -> None:
    """Turn text into a corpus of tokens on disk, once for many runs.

    Example: bertsmith prepare news/ --tokenizer my-tokenizer --out my-corpus
    """
    from bertsmith.cli.tables import byte_progress
    from bertsmith.corpus.config import CorpusConfig
    from bertsmith.recipes.prepare import prepare_run
    from bertsmith.text.documents import TextConfig

    values = {"validation_fraction": validation, "workers": workers, "seed": seed}
    config = CorpusConfig.parse(values, where="the options")
    reading = TextConfig.parse({"layout": layout, "text_column": text}, where="the options")
    with byte_progress("tokenized") as on_progress:
        corpus = prepare_run(sources, tokenizer, out, config, reading, on_progress=on_progress)
    for warning in corpus.warnings:
        note(f"note: {warning}")
    manifest = corpus.manifest
    result(
        {
            "folder": str(out),
            "train": manifest.train.model_dump(),
            "validation": manifest.validation.model_dump(),
            "dropped_documents": manifest.dropped_documents,
            "train_entropy": manifest.train_entropy,
            "context_free_loss": manifest.context_free_loss,
        },
        as_json=as_json,
    )


def verify(
    folder: Annotated[Path, typer.Argument(help="A corpus, checkpoint, model, tokenizer or run.")],
    as_json: Json = False,
) -> None:
    """Check a folder against its manifest: a flipped bit, a cut or missing file.

    Example: bertsmith verify my-corpus
    """
    from bertsmith.recipes.inspect_folder import verify_folder

    found = verify_folder(folder)
    if as_json:
        result(
            {"folder": str(folder), "kind": found.kind, "whole": not found.faults, "faults": list(found.faults)},
            as_json=True,
        )
    elif not found.faults:
        note(f"{found.kind} {folder}: whole")
    if found.faults and not as_json:
        for fault in found.faults:
            typer.echo(fault)
    if found.faults:
        raise InputError(
            "A folder must be as it was written", f"{folder}, with {len(found.faults)} faults", "Make or fetch it anew."
        )
