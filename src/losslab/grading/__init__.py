"""Marking what students hand in: their code runs alone in a sandbox, and what it gives is compared out here.

`lab` says what a lab is and what its items are worth; `tasks` has the hidden tests an item can have; `submissions`
reads what was handed in; `sandbox` runs it, with `inside` as the program in there and `remote` as the line to it;
`marking` puts it together for one submission.
"""

from losslab.grading.lab import Feedback, GraderError, Item, Lab, LabError, Verdict, find_lab, load_lab
from losslab.grading.marking import ItemMark, Mark, mark, self_test
from losslab.grading.sandbox import IsolationMissingError, Limits, NoIsolationWarning
from losslab.grading.tasks import Promises, Raises, Values

__all__ = [
    "Feedback",
    "GraderError",
    "IsolationMissingError",
    "Item",
    "ItemMark",
    "Lab",
    "LabError",
    "Limits",
    "Mark",
    "NoIsolationWarning",
    "Promises",
    "Raises",
    "Values",
    "Verdict",
    "find_lab",
    "load_lab",
    "mark",
    "self_test",
]
