"""Work on other processes and machines: any `concurrent.futures.Executor`, and Dask."""

from bmpaudit.executors.crew import Crew, crew_of
from bmpaudit.executors.pickling import dumps

__all__ = ["Crew", "crew_of", "dumps"]
