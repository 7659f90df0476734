from .collection import Outcome as Outcome
from .collection import execute_all as execute_all
from .collection import time_left as time_left
from .executor import execute as execute
from .jobs import Job as Job
from .jobs import names as names
from .jobs import plan as plan
from .jobs import resolve as resolve
