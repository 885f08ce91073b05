"""What is read off a call."""

from types import SimpleNamespace
from typing import Any

import pytest

from phasetrace_transformers import extract
from tests.integrations.transformers.fakes import FakeModel, FakeTensor

IDS = FakeTensor([[5, 6, 7], [8, 9, 2]])


def call(*args: Any, model: Any = None, **kwargs: Any) -> extract.Call:
    return extract.Call(model or FakeModel(), args, kwargs)


def counts(of: extract.Call) -> Any:
    return extract.prompt_counts(of, extract.rows(of.ids), extract.rows(of.mask))


@pytest.mark.parametrize(
    ("arguments", "mode"),
    [
        ({}, "greedy"),
        ({"do_sample": True}, "sample"),
        ({"num_beams": 4}, "beam"),
        ({"num_beams": 4, "do_sample": True}, "beam_sample"),
        ({"assistant_model": object()}, "assisted"),
        ({"use_mtp": True}, "assisted"),
        ({"prompt_lookup_num_tokens": 3}, "prompt_lookup"),
        ({"penalty_alpha": 0.6, "top_k": 4}, "contrastive"),
        ({"custom_generate": "someone/something"}, "other"),
        ({"cache_implementation": "paged"}, "continuous"),
    ],
)
def test_mode(arguments: dict[str, Any], mode: str) -> None:
    assert extract.mode(call(IDS, **arguments)) == mode


def test_a_setting_stands_where_generate_finds_it() -> None:
    model = FakeModel(num_beams=2, top_k=50, do_sample=True)
    passed = SimpleNamespace(num_beams=3, top_k=None)
    made = call(IDS, passed, model=model, num_beams=4)
    assert [made.knob(name) for name in ("num_beams", "top_k", "do_sample", "top_p")] == [4, 50, True, None]


def test_settings_hold_numbers_switches_and_known_words_only() -> None:
    class Sly(int):
        """A number that says more."""

    found = extract.settings(
        call(
            IDS,
            max_new_tokens=7,
            do_sample=False,
            temperature="secret",
            top_k=Sly(3),
            cache_implementation="secret",
            stop_strings=["secret"],
            streamer=object(),
            compile_config=SimpleNamespace(fullgraph=True),
        )
    )
    assert found == {
        "max_new_tokens": 7,
        "do_sample": False,
        "streamer": True,
        "batch_rows": 2,
        "compile": True,
        "compile_fullgraph": True,
    }


def test_prompts_are_counted_by_the_mask() -> None:
    mask = FakeTensor([[1, 1, 1], [0, 1, 1]])
    assert counts(call(IDS, attention_mask=mask)) == [
        {"prompt": 3, "padding": 0},
        {"prompt": 2, "padding": 1},
    ]


def test_a_mask_reaches_back_over_what_a_cache_holds() -> None:
    made = call(FakeTensor([[5, 6]]), attention_mask=FakeTensor([[1] * 9]))
    assert counts(made) == [{"prompt": 9, "padding": 0}]
    assert made.width == 9


def test_without_a_mask_the_padding_token_decides_as_in_generate() -> None:
    padded = FakeTensor([[0, 0, 7], [8, 9, 4]])
    assert counts(call(padded, model=FakeModel(pad_token_id=0, eos_token_id=2))) == [
        {"prompt": 1, "padding": 2},
        {"prompt": 3, "padding": 0},
    ]
    same = FakeModel(pad_token_id=0, eos_token_id=[2, 0])
    assert counts(call(padded, model=same)) == [{"prompt": 3, "padding": 0}] * 2


def test_what_lies_on_a_device_is_not_read() -> None:
    ids = FakeTensor([[5, 6, 7]], device="cuda")
    mask = FakeTensor([[1, 1, 1]], device="cuda")
    made = call(ids, attention_mask=mask)
    assert extract.rows(made.ids) is None
    assert counts(made) is None
    assert counts(call(ids)) == [{"prompt": 3, "padding": 0}], "its shape is known"


def test_embeddings_and_features_are_no_ids() -> None:
    embeds = SimpleNamespace(shape=(2, 11, 64))
    made = call(inputs_embeds=embeds)
    assert (made.ids, made.width, made.rows) == (None, 11, 2)
    assert call(FakeTensor([[0.5]], floating=True)).ids is None


def test_the_encoder_s_prompt_is_its_ids() -> None:
    model = FakeModel(config=SimpleNamespace(is_encoder_decoder=True))
    made = call(IDS, model=model, attention_mask=FakeTensor([[1, 1, 0], [1, 1, 1]]))
    assert made.width == 3
    assert [count["prompt"] for count in counts(made)] == [2, 3]


def test_where_each_sequence_ended() -> None:
    ids = [[9, 9, 5, 2, 0, 0], [9, 9, 5, 6, 7, 8], [9, 2, 3, 5, 5, 5]]
    assert extract.endings(ids, 2, [2, 3]) == [
        {"output": 2, "reason": "stop"},
        {"output": 4, "reason": "length"},
        {"output": 1, "reason": "stop"},
    ]


def test_several_sequences_of_one_prompt_stand_together() -> None:
    prompts = [{"prompt": 3, "padding": 0}, {"prompt": 2, "padding": 1}]
    ends = [{"output": n, "reason": "length"} for n in (1, 2, 3, 4)]
    found = extract.side_by_side(prompts, ends)
    assert found is not None
    assert [(s["prompt"], s["output"]) for s in found] == [(3, 1), (3, 2), (2, 3), (2, 4)]
    assert extract.side_by_side(None, ends) == ends
    assert extract.side_by_side(prompts, None) == prompts
    assert extract.side_by_side(None, None) is None


def test_tokens_that_a_cache_holds() -> None:
    dynamic = SimpleNamespace(get_seq_length=lambda: 7)
    old = ((SimpleNamespace(shape=(1, 2, 7, 16)),),)
    assert extract.cached_tokens(call(IDS)) == 0
    assert extract.cached_tokens(call(IDS, past_key_values=dynamic)) == 14
    assert extract.cached_tokens(call(IDS, cache=dynamic)) == 14
    assert extract.cached_tokens(call(IDS, past_key_values=old)) == 14
    assert extract.cached_tokens(call(IDS, past_key_values=object())) is None


def test_a_static_cache_on_a_device_is_not_asked() -> None:
    keys = SimpleNamespace(device=SimpleNamespace(type="cuda"))
    cache = SimpleNamespace(is_compileable=True, layers=[SimpleNamespace(keys=keys)])
    assert extract.cached_tokens(call(IDS, past_key_values=cache)) is None


def test_padding_is_no_part_of_what_is_hashed() -> None:
    assert extract.without_padding([[0, 5, 6], [7, 8, 9]], [[0, 1, 1], [1, 1, 1]]) == [[5, 6], [7, 8, 9]]
    assert extract.without_padding([[5, 6]], [[1, 1, 1]]) == [[5, 6]], "a mask that reaches further back"


def test_returned_ids_are_found_in_either_form() -> None:
    assert extract.returned_ids(IDS) is IDS
    assert extract.returned_ids(SimpleNamespace(sequences=IDS)) is IDS
    assert extract.returned_ids("something of a custom generate") is None


def test_a_forward_is_as_large_as_its_inputs() -> None:
    assert extract.forward_shape({"input_ids": IDS, "use_cache": True}) == (2, 3)
    assert extract.forward_shape({"input_ids": None, "inputs_embeds": SimpleNamespace(shape=(1, 9, 4))}) == (
        1,
        9,
    )
    assert extract.forward_shape({}) == (0, 0)


def test_forgetting_lets_go_of_every_argument() -> None:
    made = call(IDS, attention_mask=IDS, model=FakeModel(eos_token_id=2))
    made.forget()
    assert IDS not in vars(made).values()
    assert made.ids is None
    assert (made.rows, made.eos) == (2, [2])


@pytest.mark.parametrize("junk", ["text", [1, 2], object(), SimpleNamespace(shape=()), {"input_ids": 3}])
def test_what_generate_will_refuse_does_not_stop_the_recording(junk: Any) -> None:
    made = call(junk, attention_mask=junk)
    assert extract.mode(made) == "greedy"
    extract.settings(made)
    assert counts(made) is None
