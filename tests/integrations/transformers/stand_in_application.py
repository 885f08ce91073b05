"""An application of the stand-in: prints what it generated, and what it can see of its engine's hooks."""

import inspect
import json
import sys
import threading
from types import SimpleNamespace

from transformers.generation.utils import GenerationMixin


class Ids:
    """A tensor of the host."""

    device = SimpleNamespace(type="cpu")

    def __init__(self, rows):
        self.rows = rows

    @property
    def shape(self):
        return (len(self.rows), len(self.rows[0]))

    def is_floating_point(self):
        return False

    def tolist(self):
        return [list(row) for row in self.rows]

    def last(self):
        return Ids([row[-1:] for row in self.rows])

    def with_token(self, token):
        return Ids([[*row, token] for row in self.rows])


class Model(GenerationMixin):
    config = SimpleNamespace(is_encoder_decoder=False, model_type="stand-in")
    generation_config = SimpleNamespace(eos_token_id=None)

    def parameters(self):
        return []

    def forward(self, input_ids):
        return sum(map(sum, input_ids.rows)) * 31 + 7


class Streamer:
    def __init__(self):
        self.said = []

    def put(self, value):
        self.said.append(value)


def main():
    model, streamer, outputs = Model(), Streamer(), []
    outputs.append(model.generate(Ids([[1, 2, 3], [4, 5, 6]]), max_new_tokens=5, streamer=streamer).rows)
    worker = threading.Thread(
        target=lambda: outputs.append(model.generate(Ids([[7] * 40]), max_new_tokens=3).rows)
    )
    worker.start()
    worker.join()

    def failing(ids, scores):
        raise RuntimeError("a secret of the application")

    try:
        model.generate(Ids([[1]]), stopping_criteria=[failing])
    except RuntimeError as error:
        outputs.append(str(error))
    facts = {
        "outputs": outputs,
        "said": streamer.said,
        "signature": str(inspect.signature(GenerationMixin.generate)),
        "name": GenerationMixin.generate.__qualname__,
        "doc": GenerationMixin.generate.__doc__,
    }
    print(json.dumps(facts))
    sys.exit(3)


if __name__ == "__main__":
    main()
