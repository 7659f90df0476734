from . import cells as cells
from . import datasets as datasets
from . import execute as execute
from . import experiments as experiments
from . import figures as figures
from . import models as models
from . import probes as probes
from . import runs as runs
from . import statistics as statistics
from . import targets as targets
from . import training as training
from . import widgets as widgets
from .cells import HMLSTM as HMLSTM
from .cells import LSTM as LSTM
from .cells import NestedLSTM as NestedLSTM
from .parameters import check_parameters as check_parameters
from .paths import workspace as workspace

__version__: str
