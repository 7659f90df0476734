from .items import Lines as Lines
from .text import Excerpt as Excerpt
from .text import KnownText as KnownText
from .words import Sequences as Sequences
