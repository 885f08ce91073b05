"""The loop of `_sample`, with the methods that are hooked and nothing else."""

from .logits_process import LogitsProcessorList
from .stopping_criteria import StoppingCriteriaList


class GenerationMixin:
    def prepare_inputs_for_generation(self, input_ids, **kwargs):
        return {"input_ids": input_ids if kwargs.get("first") else input_ids.last()}

    def _update_model_kwargs_for_generation(self, outputs, model_kwargs, **kwargs):
        return {**model_kwargs, "first": False}

    def generate(self, inputs, max_new_tokens=20, stopping_criteria=(), streamer=None, **kwargs):
        """Generate."""
        kwargs["first"] = True
        processors, criteria = LogitsProcessorList(), StoppingCriteriaList(stopping_criteria)
        for _ in range(max_new_tokens):
            outputs = self.forward(**self.prepare_inputs_for_generation(inputs, **kwargs))
            kwargs = self._update_model_kwargs_for_generation(outputs, kwargs)
            scores = processors(inputs, outputs)
            inputs = inputs.with_token(scores % 97)
            done = criteria(inputs, scores)
            if streamer is not None:
                streamer.put(inputs.rows[0][-1])
            if done:
                break
        return inputs
