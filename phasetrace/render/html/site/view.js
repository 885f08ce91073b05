// The stretch of time that waterfall and batch timeline show together, in microseconds.

export class View {
  constructor(length) {
    this.length = length;
    this.from = 0;
    this.to = length;
    this.listeners = [];
  }

  onChange(listener) {
    this.listeners.push(listener);
  }

  get zoomed() {
    return this.from > 0 || this.to < this.length;
  }

  set(from, to) {
    const shortest = Math.min(this.length, 20); // microseconds
    const span = Math.min(this.length, Math.max(shortest, to - from));
    this.from = Math.min(Math.max(0, from), this.length - span);
    this.to = this.from + span;
    for (const listener of this.listeners) listener(this);
  }

  // Around a time that stays where it is.
  zoom(factor, around = (this.from + this.to) / 2) {
    this.set(around - (around - this.from) * factor, around + (this.to - around) * factor);
  }

  // By a share of what is shown.
  pan(part) {
    const by = (this.to - this.from) * part;
    this.set(this.from + by, this.to + by);
  }

  reset() {
    this.set(0, this.length);
  }

  // Moves, if need be, so that a stretch can be seen.
  show(begin, end) {
    if (end < this.from || begin > this.to) {
      const span = Math.max(this.to - this.from, (end - begin) * 1.2);
      this.set((begin + end - span) / 2, (begin + end + span) / 2);
    }
  }
}

// Times of round numbers for an axis: about so many in the stretch.
export function roundTimes(from, to, about) {
  const least = (to - from) / about;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((n) => n * power).find((s) => s >= least);
  const times = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) times.push(t);
  return times;
}
