"""How other tools tell of a request, one small table each; all lead to the same `Request`."""

from collections.abc import Iterable
from functools import lru_cache

from phasetrace.read.dialects.dialect import Dialect, Stage, Written
from phasetrace.read.dialects.dynamo import DYNAMO
from phasetrace.read.dialects.genai import GENAI
from phasetrace.read.dialects.libraries import OPENINFERENCE, OPENLIT, OPENLLMETRY
from phasetrace.read.dialects.llm_d import LLM_D
from phasetrace.read.dialects.records import RECORDS
from phasetrace.read.dialects.sglang import SGLANG
from phasetrace.read.dialects.tensorrt_llm import TENSORRT_LLM
from phasetrace.read.dialects.tgi import TGI
from phasetrace.read.dialects.triton import TRITON
from phasetrace.read.dialects.vllm import LOADING, NAME, VLLM, is_loading

# Asked in this order: vLLM's is the most frequent and quickest to tell, then the most particular first.
DIALECTS = (
    VLLM,
    SGLANG,
    TENSORRT_LLM,
    TGI,
    TRITON,
    LLM_D,
    DYNAMO,
    OPENLIT,
    OPENINFERENCE,
    OPENLLMETRY,
    GENAI,
    *RECORDS,
)

STAGES: dict[str, Stage] = {name: stage for dialect in DIALECTS for name, stage in dialect.stages.items()}
# Names that tell by themselves that a span is of use.
NAMES = frozenset(STAGES).union(
    LOADING,
    (NAME,),
    *(dialect.parts for dialect in DIALECTS),
    ("gateway.request", "gateway.request_orchestration", "llm_d.pd_proxy.request", "http-request"),
)
# What the keys of a span's attributes begin with where it is of use; most spans of an application are not.
_TELLING = (
    "gen_ai.",
    "phasetrace.request.id",
    "llm.token_count.",
    "llm.request.type",
    "openinference.span.kind",
    "inference_time",
    "thread_label",
    "module",
    "rid",
    "triton.",
    "model_name",
)


def wanted(name: str, keys: Iterable[str]) -> bool:
    """Whether a span is worth decoding."""
    return name in NAMES or any(map(_telling, keys))


@lru_cache(maxsize=4096)
def _telling(key: str) -> bool:
    return key.startswith(_TELLING)


def dialect_of(written: Written) -> Dialect | None:
    """Whose request this span is; None where it is none."""
    for dialect in DIALECTS:
        if dialect.is_request(written):
            return dialect
    return None


__all__ = [
    "DIALECTS",
    "LOADING",
    "NAMES",
    "STAGES",
    "Dialect",
    "Stage",
    "Written",
    "dialect_of",
    "is_loading",
    "wanted",
]
