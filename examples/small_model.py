"""A small Llama-like model with random weights and a tokenizer with a chat template, made on the spot.

Nothing is downloaded. How long a model takes does not depend on what it says, so random weights measure as
well as trained ones. From the command line, `python small_model.py FOLDER --layers 4` saves both.
"""

import argparse

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

TEXT = """
The river rises in the hills above the old town and turns the wheels of three mills before it meets the sea.
A compiler reads a program, builds a tree, rewrites the tree, and writes instructions for a machine.
When the market opened, the price of copper fell by four percent, then slowly climbed back to where it began.
She packed two shirts, a map, a lamp, some bread and the letter that her brother had sent from the north.
Every engine loses heat. The question that engineers ask is where it goes, and how much of it can be kept.
To bake the bread, mix flour with water and salt, wait for an hour, fold the dough, and wait once more.
What is the capital of the country? How far is the moon? Why do leaves change colour in the autumn?
""".strip().splitlines()

SPECIAL = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}

CHAT_TEMPLATE = (
    "{% for message in messages %}<{{ message['role'] }}> {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant> {% endif %}"
)


def make_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer, trained on the lines above; it encodes any text."""
    tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1024,
        special_tokens=list(SPECIAL.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        padding_side="left",
        model_input_names=["input_ids", "attention_mask"],
        **SPECIAL,
    )
    wrapped.chat_template = CHAT_TEMPLATE
    return wrapped


def make_model(
    tokenizer: PreTrainedTokenizerFast,
    *,
    hidden: int = 512,
    layers: int = 8,
    heads: int = 8,
    kv_heads: int = 4,
    context: int = 4096,
    seed: int = 0,
) -> LlamaForCausalLM:
    """A decoder of the given size in float32, seeded, in evaluation mode."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=max(tokenizer.get_vocab().values()) + 1,
        hidden_size=hidden,
        intermediate_size=hidden * 3,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=context,
        tie_word_embeddings=False,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return LlamaForCausalLM(config).eval()


def make_prompt(words: int, seed: int) -> str:
    """A prompt of so many words; each seed gives another one, different from its first word on."""
    vocabulary = sorted({word.strip(".,?").lower() for line in TEXT for word in line.split()})
    picks = torch.randint(len(vocabulary), (words,), generator=torch.Generator().manual_seed(seed))
    return " ".join(vocabulary[pick] for pick in picks.tolist())


def main() -> None:
    """Save a model and its tokenizer into a folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder")
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--kv-heads", type=int, default=4)
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--seed", type=int, default=0)
    arguments = vars(parser.parse_args())
    folder = arguments.pop("folder")
    tokenizer = make_tokenizer()
    make_model(tokenizer, **arguments).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main()
