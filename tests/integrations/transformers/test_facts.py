"""A model's shape."""

from types import SimpleNamespace

import pytest

from phasetrace_transformers.facts import model_facts
from tests.integrations.transformers.fakes import FakeModel, Parameter


def config(**more: object) -> SimpleNamespace:
    return SimpleNamespace(
        **{
            "is_encoder_decoder": False,
            "model_type": "llama",
            "num_hidden_layers": 4,
            "hidden_size": 64,
            "num_attention_heads": 8,
            "num_key_value_heads": 2,
            "vocab_size": 100,
            "max_position_embeddings": 512,
            **more,
        }
    )


def test_a_plain_model() -> None:
    assert model_facts(FakeModel(Parameter(100), Parameter(10, 4, "torch.float32"), config=config())) == {
        "architecture": "FakeModel",
        "name": "llama",
        "layers": 4,
        "hidden_size": 64,
        "heads": 8,
        "kv_heads": 2,
        "head_dim": 8,
        "vocabulary": 100,
        "max_context": 512,
        "parameters": 110,
        "weight_bytes": 240,
        "offloaded_bytes": 0,
        "dtype": "bfloat16",
        "device": "cpu",
        "encoder_decoder": False,
        "compiled": False,
    }


def test_the_names_of_older_configurations() -> None:
    facts = model_facts(FakeModel(Parameter(1), config=SimpleNamespace(n_layer=2, n_embd=32, n_head=4)))
    assert (facts["layers"], facts["hidden_size"], facts["kv_heads"], facts["head_dim"]) == (2, 32, 4, 8)


def test_weights_that_are_fetched_for_each_forward() -> None:
    model = FakeModel(Parameter(10, device="meta"), Parameter(30, device="cuda"), config=config())
    facts = model_facts(model)
    assert (facts["offloaded_bytes"], facts["device"]) == (20, "cuda")


def test_a_device_map_says_where_forwards_run() -> None:
    model = FakeModel(Parameter(10, device="meta"), config=config())
    model.hf_device_map = {"model.layers.0": "cpu", "model.layers.1": 0}  # type: ignore[attr-defined]
    assert model_facts(model)["device"] == "cuda"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"quant_method": "gptq", "bits": 4}, "gptq-4bit"),
        (
            SimpleNamespace(quant_method=SimpleNamespace(value="bitsandbytes"), load_in_4bit=True),
            "bitsandbytes-4bit",
        ),
        ({"quant_method": "/home/someone/secret"}, "other"),
    ],
)
def test_quantised_weights_are_packed(given: object, name: str) -> None:
    facts = model_facts(FakeModel(Parameter(10), config=config(quantization_config=given)))
    assert facts["quantization"] == name
    assert "parameters" not in facts


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("someone/some-model", "some-model"),
        ("/home/someone/models/mine/", "mine"),
        ("/c/hub/models--someone--some-model/snapshots/0123abc", "some-model"),
        ("", "llama"),
    ],
)
def test_of_a_model_s_place_only_the_name_is_told(path: str, name: str) -> None:
    assert model_facts(FakeModel(Parameter(1), config=config(_name_or_path=path)))["name"] == name
