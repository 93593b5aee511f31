"""What a lab's notebook imports: where it runs, whether a function is right, what it draws, and live controls.

Nothing here knows a right answer; each lab brings its own targets. `release` makes the student copies, `command` is
``losslab labs``.
"""

from losslab.labs.checks import agrees, promises
from losslab.labs.controls import Live, live
from losslab.labs.pictures import Picture, picture
from losslab.labs.start import LABS, setup

__all__ = ["LABS", "Live", "Picture", "agrees", "live", "picture", "promises", "setup"]
