"""Commands that bring models in and give them to the Hub."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from bertsmith.cli.options import Json
from bertsmith.cli.output import note, result


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("import")(import_model)
    app.command("push")(push)


def import_model(
    source: Annotated[str, typer.Argument(help="A name on the Hub, or a folder: Hugging Face or TensorFlow.")],
    out: Annotated[Path, typer.Option(help="The model's folder, new or empty.")],
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit on the Hub.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder of the Hub's cache; the usual one if not given.")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Take what is in the cache and ask nobody.")] = False,
    as_json: Json = False,
) -> None:
    """Make a model folder out of a model from elsewhere.

    Example: bertsmith import google-bert/bert-base-cased --out bert-base

    A Hugging Face folder holds config.json and .safetensors or .bin, a TensorFlow one bert_config.json and
    bert_model.ckpt. HF_TOKEN opens what is private, HF_ENDPOINT names another Hub.
    """
    from bertsmith.recipes.import_model import import_model_run

    _plain_lines_elsewhere(f"import of {source}")
    found = import_model_run(source, out, revision=revision, cache=cache, offline=offline)
    for line in found.notes:
        note(f"note: {line}")
    values = asdict(found)
    result(values if as_json else {name: values[name] for name in values if name != "notes"}, as_json=as_json)


def push(
    folder: Annotated[Path, typer.Argument(help="A model folder, or a finished run.")],
    name: Annotated[str, typer.Argument(help="owner/name, or name for the token's owner.")],
    private: Annotated[bool, typer.Option("--private", help="Nobody else may see it.")] = False,
    revision: Annotated[str, typer.Option("--revision", "--branch", help="The branch; made if missing.")] = "main",
    license_id: Annotated[str | None, typer.Option("--license", help="The licence, as the Hub names it.")] = None,
    language: Annotated[str | None, typer.Option(help="The text's language, such as en.")] = None,
    as_json: Json = False,
) -> None:
    """Give a model to the Hub, in one commit with its card.

    Example: bertsmith push my-bert/model my-name/my-bert --private --license apache-2.0

    It needs a token that may write: HF_TOKEN, or `hf auth login`.
    """
    from bertsmith.recipes.push import push_run

    _plain_lines_elsewhere(f"push to {name}")
    done = push_run(folder, name, revision=revision, private=private, license_id=license_id, language=language)
    if done.license == "unknown":
        note("note: the card says license: unknown; --license tells it")
    result(asdict(done), as_json=as_json)


def _plain_lines_elsewhere(what: str) -> None:
    """The Hub's library draws its bars on any standard error; where that is no terminal, a line takes their place."""
    from huggingface_hub import constants
    from huggingface_hub.utils import disable_progress_bars

    if sys.stderr.isatty():
        return
    note(f"{what} begins")
    # What a person has set stays.
    if constants.HF_HUB_DISABLE_PROGRESS_BARS is None:
        disable_progress_bars()
