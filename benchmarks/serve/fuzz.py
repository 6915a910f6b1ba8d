"""Two thousand requests that nobody should send: no 5xx, and no stream changes by a bit.

Half are made by schemathesis from the server's own OpenAPI document, half are damaged binary requests.
``python -m benchmarks.serve.fuzz`` prints one JSON object.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.serve.harness import LIGHT, Server, binary_request, pictures, serving

VICTIMS = ("victim-aa41c7", "victim-b90f12")


def damaged(draw: random.Random, name: str) -> tuple[bytes, dict[str, str]]:
    """A binary request with something wrong: cut, padded, flipped, or lying about its sizes."""
    body, length = binary_request(pictures(1, draw.randrange(100)), name, sequence_start=True)
    cut = int(length)
    head, raw = bytearray(body[:cut]), bytearray(body[cut:])
    headers = {"Inference-Header-Content-Length": length, "Content-Type": "application/octet-stream"}
    kind = draw.randrange(8)
    if kind == 0:
        del raw[draw.randrange(len(raw)) :]
    elif kind == 1:
        raw += draw.randbytes(draw.randrange(1, 500))
    elif kind == 2:
        headers["Inference-Header-Content-Length"] = str(draw.choice([0, 1, cut - 1, cut + 1, 10**9, -5, "x", 2**70]))
    elif kind == 3:
        document = json.loads(head)
        document["inputs"][0]["shape"] = [draw.choice([0, -1, 2, 10**12, 2**63, 1.5, "3", None]), 3, 32, 32]
        head = bytearray(json.dumps(document).encode())
        headers["Inference-Header-Content-Length"] = str(len(head))
    elif kind == 4:
        document = json.loads(head)
        document["inputs"][0]["parameters"]["binary_data_size"] = draw.choice(
            [0, 3071, 3073, -1, 2**64, "3072", [], True]
        )
        head = bytearray(json.dumps(document).encode())
        headers["Inference-Header-Content-Length"] = str(len(head))
    elif kind == 5:
        document = json.loads(head)
        document["inputs"][0]["datatype"] = draw.choice(["FP32", "FP64", "BYTES", "INT64", "BF16", "", 8])
        head = bytearray(json.dumps(document).encode())
        headers["Inference-Header-Content-Length"] = str(len(head))
    elif kind == 6:
        head = bytearray(draw.randbytes(len(head)))
    else:
        headers["Content-Encoding"] = draw.choice(["gzip", "deflate", "br", "zstd"])
    return bytes(head + raw), headers


def fuzz(folder: Path, requests: int, examples: int) -> dict[str, Any]:
    with serving(folder / "state", *LIGHT, "--log-level", "error") as server:
        for name in VICTIMS:
            server.infer(pictures(4), name, wait=True)
        before = [server.digest(name) for name in VICTIMS]
        draw = random.Random(0)
        statuses: dict[int, int] = {}
        for i in range(requests):
            body, headers = damaged(draw, VICTIMS[i % 2])
            answer = server.client.post("/v2/models/m/infer", content=body, headers=headers)
            statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
            assert set(answer.json()) == {"error"}, answer.text
        between = [server.digest(name) for name in VICTIMS]
        output = schemathesis(server, examples)
        after = [server.digest(name) for name in VICTIMS]
        counted = requests_by_status(server)
        alive = server.process.poll() is None
    return {
        "damaged": requests,
        "damaged_statuses": {str(key): value for key, value in sorted(statuses.items())},
        "requests": sum(counted.values()),
        "statuses": counted,
        "server_errors": sum(value for key, value in counted.items() if key.startswith("5")),
        "unchanged": before == between == after,
        "alive": alive,
        "schemathesis": output[-300:],
    }


def schemathesis(server: Server, examples: int) -> str:
    tool = Path(sys.executable).with_name("schemathesis")
    words = [str(tool), "run", f"{server.url}/openapi.json", "--max-examples", str(examples)]
    words += ["--checks", "not_a_server_error", "--seed", "1", "--continue-on-failure", "--no-color"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=server.state)
    return done.stdout + done.stderr


def requests_by_status(server: Server) -> dict[str, int]:
    counted: dict[str, int] = {}
    for line in server.client.get("/metrics").text.splitlines():
        if line.startswith("grotta_requests_total{"):
            status = line.split('status="')[1].split('"')[0]
            counted[status] = counted.get(status, 0) + int(float(line.rsplit(" ", 1)[1]))
    return counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--damaged", type=int, default=1000)
    parser.add_argument("--examples", type=int, default=100, help="of schemathesis, for each operation and phase")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        json.dump(fuzz(Path(folder), given.damaged, given.examples), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
