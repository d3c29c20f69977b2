"""The verbs as functions, with the names and defaults of the command line, and the parts for loops of one's own."""

from bertsmith.api.training import compare, finetune, pretrain, profile
from bertsmith.api.using import evaluate, load
from bertsmith.foundation.errors import InputError, Stopped
from bertsmith.inference.predictor import Prediction
from bertsmith.model.packed import PackedTokens
from bertsmith.pictures.attention import draw_head
from bertsmith.recipes.attention import attention_run as attention
from bertsmith.recipes.exporting.run import export_run as export
from bertsmith.recipes.generate import generate_run as generate
from bertsmith.recipes.import_model import import_model_run as import_model
from bertsmith.recipes.inspect_folder import info
from bertsmith.recipes.inspect_folder import verify_folder as verify
from bertsmith.recipes.own_loop.encoder import Encoder
from bertsmith.recipes.own_loop.masked_batch import MaskedBatch, masked_batch
from bertsmith.recipes.own_loop.next_sentence import NextSentenceExample, next_sentence_example
from bertsmith.recipes.own_loop.task_model import TaskModel, TaskOutput
from bertsmith.recipes.own_loop.word_labels import AlignedLabels, aligned_labels
from bertsmith.recipes.plan import Plan, plan
from bertsmith.recipes.prepare import prepare_run as prepare
from bertsmith.recipes.push import push_run as push
from bertsmith.recipes.results import Report, Run
from bertsmith.recipes.train_tokenizer import train_tokenizer_run as train_tokenizer
from bertsmith.tokenization.tokenizer import Tokenizer

__all__ = [
    "AlignedLabels",
    "Encoder",
    "InputError",
    "MaskedBatch",
    "NextSentenceExample",
    "PackedTokens",
    "Plan",
    "Prediction",
    "Report",
    "Run",
    "Stopped",
    "TaskModel",
    "TaskOutput",
    "Tokenizer",
    "aligned_labels",
    "attention",
    "compare",
    "draw_head",
    "evaluate",
    "export",
    "finetune",
    "generate",
    "import_model",
    "info",
    "load",
    "masked_batch",
    "next_sentence_example",
    "plan",
    "prepare",
    "pretrain",
    "profile",
    "push",
    "train_tokenizer",
    "verify",
]
