// Perfetto's own trace processor, as its user interface ships it for browsers, run by Node: what it is asked on
// stdin, it answers on stdout, in its own protocol. Usage: node trace_processor.mjs FOLDER_OF_THE_INTERFACE
import fs from "node:fs";
import path from "node:path";

const folder = process.argv[2];

class FileRequest { // what the processor knows of XMLHttpRequest: it loads its own code by it
  open(_, name) { this.name = name; }
  send() { this.response = new Uint8Array(fs.readFileSync(path.join(folder, path.basename(this.name)))).buffer; }
}

const worker = { location: { href: "" } };
const bundle = fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8");
const quiet = { ...console, log: () => {}, warn: () => {} };
new Function("self", "WorkerGlobalScope", "XMLHttpRequest", "process", "console", bundle)(
  worker, Object, FileRequest, undefined, quiet);

const port = { postMessage: (reply) => fs.writeSync(1, reply) };
setTimeout(() => { // after the processor has started
  worker.onmessage({ data: port });
  process.stdin.on("data", (data) => port.onmessage({ data: new Uint8Array(data) }));
}, 0);
