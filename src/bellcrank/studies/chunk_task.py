"""What a worker is sent, and what it does: a study as bytes, kept for its next chunks, and rows of the table."""

from __future__ import annotations

import hashlib
import pickle
import threading
import warnings
from collections.abc import Mapping
from typing import Any

from bellcrank.arrays import Floats
from bellcrank.errors import BranchWarning, ModelError
from bellcrank.simulate.run import SimulationWarning
from bellcrank.studies.kept_values import ChunkResult
from bellcrank.studies.lane_blocks import compute_chunk
from bellcrank.studies.study import Study

__all__ = ["chunk_task", "packed", "quiet"]

#: studies that this process has computed chunks of, the last ones
_known: dict[str, Study] = {}
_lock = threading.Lock()
_MOST = 4


def packed(study: Study) -> tuple[bytes, str]:
    """A study for other processes, and its digest. Functions travel by value where cloudpickle is installed."""
    try:
        import cloudpickle as pickler
    except ImportError:
        pickler = pickle
    try:
        data = pickler.dumps(study, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise ModelError(f"sweep: {_culprit(study, pickler)} cannot be sent to other processes: {error}. Define "
                         "functions at the top level of a module, install cloudpickle, or take executor='threads'"
                         ) from error
    return data, hashlib.sha256(data).hexdigest()


def _culprit(study: Study, pickler: Any) -> str:
    """The part of a study that cannot be pickled."""
    parts: dict[str, Any] = {"the machine": study.system, "reduce": study.reduce}
    parts |= {f"run[{name!r}]": value for name, value in study.run.items()} if isinstance(study.run, Mapping) else {
        "run": study.run}
    for name, value in parts.items():
        try:
            pickler.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception:
            return name
    return "the study"


def quiet() -> None:
    """What warnings would say of runs is in their status and reason."""
    for category in (BranchWarning, SimulationWarning):
        warnings.simplefilter("ignore", category)


def chunk_task(data: bytes, digest: str, rows: Floats) -> ChunkResult:
    """A chunk in another process."""
    with _lock:
        study = _known.get(digest)
        if study is None:
            quiet()
            while len(_known) >= _MOST:
                _known.pop(next(iter(_known)))
            study = _known[digest] = pickle.loads(data)
    return compute_chunk(study, rows)
