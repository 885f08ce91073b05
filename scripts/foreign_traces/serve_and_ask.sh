#!/usr/bin/env bash
# A real vLLM with its own tracing, asked by a client in a Python that has an instrumentation of OpenAI's client.
# Usage: serve_and_ask.sh VLLM_PYTHON FOLDER_WITH_A_MODEL RECEIVER_URL [WATCHER=CLIENT_PYTHON ...]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=$1 folder=$2 receiver=$3
shift 3
cd "$folder" # a relative name of the model: spans say it
export VLLM_CPU_KVCACHE_SPACE=1 VLLM_NO_USAGE_STATS=1 HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1
export OTEL_SERVICE_NAME=vllm-server OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf
"$python" -m vllm.entrypoints.openai.api_server --model small-llama --port 4991 --host 127.0.0.1 --enforce-eager \
    --max-model-len 1024 --dtype float32 --otlp-traces-endpoint "$receiver/vllm/v1/traces" >server.log 2>&1 &
server=$!
trap 'kill $server; wait $server' EXIT
for _ in $(seq 240); do
    curl -sf http://127.0.0.1:4991/health >/dev/null && break
    kill -0 $server || exit 1
    sleep 0.5
done
for watched in "$@"; do
    "${watched#*=}" "$here/ask_server.py" "${watched%%=*}" http://127.0.0.1:4991 "$receiver" small-llama
done
sleep 6 # until the server's exporter has sent what it has
