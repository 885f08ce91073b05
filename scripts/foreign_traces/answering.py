"""A server that answers as OpenAI's does, with a token every 4 ms. Usage: answering.py PORT."""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FIRST_S, EACH_S = 0.03, 0.004


class Answering(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tokens, chat = asked["max_tokens"], "messages" in asked
        prompt = len(json.dumps(asked["messages" if chat else "prompt"]).split())
        usage = {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}
        head = {"id": f"cmpl-{time.time_ns()}", "created": int(time.time()), "model": asked["model"]}
        time.sleep(FIRST_S)
        self.send_response(200)
        if asked.get("stream"):
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for number in range(tokens):
                reason = "length" if number == tokens - 1 else None
                choice = {"index": 0, "delta": {"content": "a "}, "finish_reason": reason}
                self.chunk({**head, "object": "chat.completion.chunk", "choices": [choice]})
                time.sleep(EACH_S)
            self.chunk({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")
            return
        time.sleep(EACH_S * tokens)
        said = {"message": {"role": "assistant", "content": "a"}} if chat else {"text": "a"}
        choice = {"index": 0, "finish_reason": "length", **said}
        kind = "chat.completion" if chat else "text_completion"
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({**head, "object": kind, "choices": [choice], "usage": usage}).encode())

    def chunk(self, document: dict[str, object]) -> None:
        self.wfile.write(b"data: " + json.dumps(document).encode() + b"\n\n")
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answering).serve_forever()
