// The tokens of one request, out of the steps that gave them.

export function tokensOf(request, steps) {
  const [first, end] = request.rows;
  if (!steps || first < 0 || end - first < 1) return null;
  const times = steps.end.subarray(first, end);
  const gaps = new Float64Array(Math.max(0, times.length - 1));
  for (let i = 0; i < gaps.length; i++) gaps[i] = times[i + 1] - times[i];
  return { times, gaps, typical: median(gaps) };
}

// Counted from 1: the token that ended at this time, or the first after it.
export function tokenAt(tokens, time) {
  return Math.min(tokens.times.length, lowerBound(tokens.times, time) + 1);
}

// The first place whose value is not less.
export function lowerBound(sorted, value) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function median(values) {
  if (!values.length) return null;
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
