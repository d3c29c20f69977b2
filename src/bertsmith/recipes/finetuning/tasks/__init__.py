"""The downstream tasks, by name."""

from bertsmith.recipes.finetuning.task import Task
from bertsmith.recipes.finetuning.tasks.classify import Classify

TASKS: dict[str, Task] = {task.name: task for task in (Classify(),)}
