"""An application that speaks to the agent's recorder as an integration would; it starts at once.

usage: fake_app.py MODE [ARGUMENT]
"""

import multiprocessing
import os
import signal
import sys
import time

MS = 1_000_000
STEPS = 10


def generate(steps=STEPS, finish=True, each=None, data=None):
    """One request of `steps` tokens."""
    from phasetrace_agent import bootstrap, clock, layout

    recorder = bootstrap.recorder()
    recorder.facts(layout.ENGINE, 1, {"engine": "transformers", "version": "5.24.0"})
    recorder.facts(layout.MODEL, 1, {"name": "tiny", "layers": 2, "device": "cpu", "dtype": "float32"})
    request = recorder.next_id()
    now = clock.now()
    recorder.arrived(request, now, {"engine": "transformers", "mode": "greedy", "model": 1, **(data or {})})
    forward, criteria = layout.PART_CODE["forward"], layout.PART_CODE["criteria"]
    for index in range(steps):
        middle, end = now + MS, now + MS + MS // 10
        joined = (request,) if index == 0 else ()
        scheduled = ((request, 8),) if index == 0 else ()
        left = (request,) if finish and index == steps - 1 else ()
        recorder.step(request, index, now, (forward, criteria), (middle, end), joined, left, scheduled)
        now = end
        if each:
            each(index)
    if finish:
        sequences = [{"prompt": 8, "padding": 0, "output": steps, "reason": "length"}]
        recorder.finished(request, now + MS // 10, {"sequences": sequences, "reason": "length"})


def say(text):
    os.write(1, (text + "\n").encode())


def killed(number):
    generate()
    generate(steps=5, finish=False)
    os.kill(os.getpid(), number)
    time.sleep(60)


def raises(_):
    generate()
    raise RuntimeError("hf_planted_in_exception")


def os_exit(code):
    generate()
    os._exit(code)


def execs(_):
    generate()
    os.execv(sys.executable, [sys.executable, __file__, "generate", "1"])


def forks(children):
    generate()
    pids = []
    for _ in range(children):
        pid = os.fork()
        if not pid:
            generate()
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)


def spawns(children):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=generate) for _ in range(children)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def leaves_an_orphan(seconds):
    generate()
    if os.fork():
        return
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for file in (0, 1, 2):
        os.dup2(null, file)
    generate(steps=5, finish=False)
    time.sleep(seconds)
    generate()
    os._exit(0)


def counts(number):
    """Count one signal, until half a second after the first."""
    seen = []
    signal.signal(number, lambda *_: seen.append(1))
    say("ready")
    end = time.monotonic() + 60
    while not seen and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.5)
    say(f"counted {len(seen)}")


def goes_on(seconds):
    """Record short requests, one after another, telling of each finished one."""
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        generate()
        number += 1
        say(f"finished {number}")
        time.sleep(0.01)


def long_request(steps):
    """One request whose records fill several segments; ends when told to on stdin."""
    generate(steps=steps, each=lambda index: (index == steps - 2) and (say("nearly"), sys.stdin.readline()))


def generates(requests):
    for _ in range(requests):
        generate()


def nothing(code):
    sys.exit(code)


MODES = {
    "counts": counts,
    "execs": execs,
    "forks": forks,
    "generate": generates,
    "goes-on": goes_on,
    "killed": killed,
    "long": long_request,
    "nothing": nothing,
    "orphan": leaves_an_orphan,
    "os-exit": os_exit,
    "raises": raises,
    "spawns": spawns,
}

if __name__ == "__main__":
    MODES[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 0)
