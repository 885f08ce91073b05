"""A small question-and-answer program that uses transformers as its documentation shows.

It knows nothing of phasetrace. Run it as `python demo.py`, or under `phasetrace run -- python demo.py`.
"""

import torch
from small_model import make_model, make_prompt, make_tokenizer

QUESTIONS = 6
PROMPT_WORDS = 150
ANSWER_TOKENS = 96


def main() -> None:
    """Answer a few questions, one after the other."""
    torch.set_num_threads(2)
    torch.manual_seed(0)
    tokenizer = make_tokenizer()
    model = make_model(tokenizer, hidden=512, layers=8)
    for number in range(QUESTIONS):
        question = make_prompt(PROMPT_WORDS, seed=number)
        inputs = tokenizer(question, return_tensors="pt")
        output = model.generate(
            **inputs, max_new_tokens=ANSWER_TOKENS, min_new_tokens=ANSWER_TOKENS, do_sample=False
        )
        answer = tokenizer.decode(output[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        print(f"question {number + 1}: {question[:40]}...  answer: {len(answer)} characters")


if __name__ == "__main__":
    main()
