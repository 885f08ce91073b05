"""The real vLLM, as its own tests have it."""

from tests.integrations.vllm.conftest import tiny_model, vllm_python

__all__ = ["tiny_model", "vllm_python"]
