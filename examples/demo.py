"""A small help desk: each question is put to a model behind the same long handbook.

It uses transformers as its documentation shows and knows nothing of phasetrace. Run it as `python demo.py` or
under `phasetrace run -- python demo.py`.
"""

import torch
from small_model import make_model, make_prompt, make_tokenizer

QUESTIONS = 8
HANDBOOK_WORDS = 700
QUESTION_WORDS = 20
ANSWER_TOKENS = 32


def main() -> None:
    """Answer a few questions, one after the other."""
    torch.set_num_threads(2)
    torch.manual_seed(0)
    tokenizer = make_tokenizer()
    model = make_model(tokenizer, hidden=512, layers=8)
    handbook = make_prompt(HANDBOOK_WORDS, seed=0)
    for number in range(1, QUESTIONS + 1):
        question = make_prompt(QUESTION_WORDS, seed=number)
        messages = [{"role": "system", "content": handbook}, {"role": "user", "content": question}]
        text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        inputs = tokenizer(text, return_tensors="pt")
        output = model.generate(
            **inputs, max_new_tokens=ANSWER_TOKENS, min_new_tokens=ANSWER_TOKENS, do_sample=False
        )
        answer = tokenizer.decode(output[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        print(f"question {number}: {question[:40]}...  answer: {len(answer)} characters")


if __name__ == "__main__":
    main()
