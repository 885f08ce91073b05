// Which request stands in which row of the waterfall.

const AXIS = 26; // pixels above the rows
const HEIGHT = 420;
const TALLEST = 20; // of a row
const NEAR = 4; // pixels: a request this close is meant
export const ORDERS = {
  lanes: ["side by side", (a, b) => a.arrival - b.arrival],
  arrival: ["a line each, by arrival", (a, b) => a.arrival - b.arrival],
  slowest: ["a line each, slowest first", (a, b) => b.e2e - a.e2e],
  ttft: ["a line each, latest first token first", (a, b) => (b.ttft ?? 0) - (a.ttft ?? 0)],
};

export class Rows {
  constructor(requests, order) {
    this.ordered = [...requests].sort(ORDERS[order][1]);
    this.lanes = order === "lanes" ? lanesOf(this.ordered) : null;
    this.seen = this.rows = [];
  }

  // What is in view, a list of requests a row. Lanes stay where they are; single requests move up.
  layOut({ from, to }) {
    const inView = (request) => request.end >= from && request.arrival <= to;
    this.seen = this.ordered.filter(inView);
    this.rows = this.lanes ? this.lanes.map((lane) => lane.filter(inView)) : this.seen.map((request) => [request]);
    this.height = Math.min(TALLEST, (HEIGHT - AXIS) / Math.max(1, this.rows.length));
  }

  // Pixels of all, the axis and a little room below included.
  get total() {
    return AXIS + Math.ceil(this.height * this.rows.length) + 4;
  }

  top(i) {
    return AXIS + i * this.height;
  }

  of(request) {
    return request ? this.rows.findIndex((row) => row.includes(request)) : -1;
  }

  // The request at a height and a time; `pixel` is the time of one.
  at(y, time, pixel) {
    const near = this.lanes ? NEAR * pixel : Infinity;
    const row = this.rows[Math.floor((y - AXIS) / this.height)] ?? [];
    return row.find(({ arrival, end }) => time >= arrival - near && time <= end + near) ?? null;
  }
}

// Each request in the first lane that is free when it arrives: as many lanes as were ever under way at once.
function lanesOf(byArrival) {
  const lanes = [];
  const freeFrom = [];
  for (const request of byArrival) {
    let lane = freeFrom.findIndex((time) => time <= request.arrival);
    if (lane < 0) lane = freeFrom.push(0) - 1;
    (lanes[lane] ??= []).push(request);
    freeFrom[lane] = request.end;
  }
  return lanes;
}
