"""As in transformers."""


class StoppingCriteriaList(list):
    def __call__(self, input_ids, scores, **kwargs):
        return any([criterion(input_ids, scores) for criterion in self])
