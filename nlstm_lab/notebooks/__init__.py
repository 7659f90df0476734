"""The strict executor: papermill, but wrong parameters are refused and unfinished notebooks leave no output."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
