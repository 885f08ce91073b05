"""Generates, and writes the number of each finished step to a file; dies as it is told.

usage: stepping.py MODE FOLDER. What each process has finished stands in FOLDER/PID.
"""

import multiprocessing
import os
import resource
import signal
import sys
import time

import torch
from small_model import make_model, make_tokenizer
from transformers import StoppingCriteria, StoppingCriteriaList

LAST = 25  # the step after which a process does what it is told to


class Progress(StoppingCriteria):
    """Never stops; tells what is done, then does something else."""

    def __init__(self, folder, then=None):
        self.folder, self.then, self.steps = folder, then, 0

    def __call__(self, input_ids, scores, **kwargs):
        file = os.open(
            os.path.join(self.folder, str(os.getpid())), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
        )
        os.write(file, b"%d\n" % self.steps)
        os.close(file)
        self.steps += 1
        if self.then and self.steps == LAST:
            self.then()
        return torch.zeros(input_ids.shape[0], dtype=torch.bool)


def load():
    torch.set_num_threads(1)
    return make_model(make_tokenizer(), hidden=64, layers=2, heads=4, kv_heads=2)


def generate(model, folder, then=None, tokens=40):
    ids = torch.randint(10, 300, (1, 20))
    model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=tokens,
        min_new_tokens=tokens,
        do_sample=False,
        stopping_criteria=StoppingCriteriaList([Progress(folder, then)]),
    )


def raise_error():
    raise RuntimeError("the criterion fails")


def out_of_memory():
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), used + (1 << 20)))
    torch.empty(1 << 30)


def exec_again(folder):
    os.execv(sys.executable, [sys.executable, __file__, "whole", folder])


def fork(model, folder):
    """Both go on: the child in a request of its own, killed in the middle of it; the parent to its end."""
    child = os.fork()
    if not child:
        generate(model, folder, lambda: os.kill(os.getpid(), signal.SIGKILL))
    os.waitpid(child, 0)


def spawned(folder):
    generate(load(), folder)


def spawn(folder):
    worker = multiprocessing.get_context("spawn").Process(target=spawned, args=(folder,))
    worker.start()
    worker.join()


def pre_fork(model, folder):
    """A server that loads, then forks its workers; they are killed when they have generated for a while."""
    workers = []
    for _ in range(2):
        worker = os.fork()
        if not worker:
            generate(model, folder, tokens=2000)
            os._exit(0)
        workers.append(worker)
    for worker in workers:
        path = os.path.join(folder, str(worker))
        while not os.path.exists(path) or os.path.getsize(path) < 60:
            time.sleep(0.005)
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)


def main(mode, folder):
    model = load()
    thens = {
        "os-exit": lambda: os._exit(7),
        "exec": lambda: exec_again(folder),
        "raise": raise_error,
        "memory": out_of_memory,
        "fork": lambda: fork(model, folder),
        "spawn": lambda: spawn(folder),
    }
    if mode == "pre-fork":
        pre_fork(model, folder)
    elif mode == "for-long":
        generate(model, folder, tokens=4000)
    else:
        generate(model, folder, thens.get(mode))


if __name__ == "__main__":
    main(*sys.argv[1:])
