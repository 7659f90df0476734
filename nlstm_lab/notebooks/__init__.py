"""The strict executor: papermill, but wrong parameters are refused and unfinished notebooks leave no output."""

from nlstm_lab.door import door

__getattr__, __all__ = door(
    __name__,
    {
        "notebooks.collection": ["Outcome", "execute_all", "time_left"],
        "notebooks.executor": ["execute"],
        "notebooks.jobs": ["Job", "names", "plan", "resolve"],
    },
)


def __dir__() -> list[str]:
    return __all__
