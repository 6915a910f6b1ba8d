"""Load on a real server on loopback: latency, throughput, many streams, crashes."""
