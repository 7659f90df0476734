from . import registry as registry
from .items import Lines as Lines
from .text import Excerpt as Excerpt
from .words import Sequences as Sequences
