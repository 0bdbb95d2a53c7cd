"""Small tasks that a Transformer learns live on a page."""

from viz_core.tasks.generating import TASKS, Examples, Task
from viz_core.tasks.model import POSITIONS, Shape, TaskTransformer
from viz_core.tasks.run import Plan, Point, Snapshot, TaskRun

__all__ = ["POSITIONS", "TASKS", "Examples", "Plan", "Point", "Shape", "Snapshot", "Task", "TaskRun", "TaskTransformer"]
