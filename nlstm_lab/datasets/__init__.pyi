from .excerpt import Excerpt as Excerpt
from .excerpt import KnownText as KnownText
from .excerpt import Lines as Lines
from .excerpt import Sequences as Sequences
