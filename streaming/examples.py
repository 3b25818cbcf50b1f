"""An example for the help of each command. `tests/test_cli.py` runs them, or for servers starts to."""

from __future__ import annotations

from typing import Final

_MEMBERS: Final = '"members": {"a": {"topics": ["t"]}, "b": {"topics": ["t"]}}'
_GROUP: Final = '{"strategy": "range", "partitions_per_topic": {"t": 3}, ' + _MEMBERS

EXAMPLES: Final = {
    "init": "evenkeel init --bootstrap kafka-1:9092",
    "up": "evenkeel up --bootstrap kafka-1:9092 --lake /var/lib/evenkeel/lake",
    "demo": "evenkeel demo --seconds 180",
    "run": "evenkeel run --bootstrap kafka-1:9092 --available-now",
    "submit": "evenkeel submit --master spark://master:7077 --bootstrap kafka-1:9092",
    "probe": "evenkeel probe --bootstrap kafka-1:9092",
    "serve": "evenkeel serve --lake lake --listen 127.0.0.1:8090",
    "alert": "evenkeel alert --check",
    "mute": 'evenkeel mute billing --for 2h --reason "deploy" --lake lake --cluster demo',
    "unmute": "evenkeel unmute billing --lake lake --cluster demo",
    "mutes": "evenkeel mutes --lake lake --cluster demo",
    "mark": 'evenkeel mark "deploy of billing 4.2" --group billing --lake lake --cluster demo',
    "maintain": "evenkeel maintain --lake lake",
    "tables": "evenkeel tables --lake lake --ddl duckdb",
    "advise": "evenkeel advise billing --lake lake",
    "explain": "evenkeel explain billing --lake lake --partition orders/3",
    "doctor": "evenkeel doctor --lake lake",
    "backtest": "evenkeel backtest --lake lake --cluster demo --since 30d",
    "export": "evenkeel export grafana --source prometheus",
    "assign": f"echo '{_GROUP}}}' | evenkeel assign",
    "what-if": (f'echo \'{_GROUP}, "current": {{"a": [["t", 0], ["t", 1], ["t", 2]]}}}}\' | evenkeel what-if'),
    "decode": 'echo \'{"key": "0002000167", "value": null}\' | evenkeel decode',
    "judge": (
        'echo \'{"topics": {"t": 1}, "records": [{"key": "0002000167", "value": "00030008636f6e73756d657200000'
        "001000572616e6765000161ffffffffffffffff00000001000161ffff000163000168000493e00000afc80000000d0000000"
        '00001000174ffffffff000000150000000000010001740000000100000000ffffffff", "time": 1767225600000}]}\' | '
        "evenkeel judge"
    ),
    "rocketmq-decode": (
        'echo \'{"bytes": "00000067000000637b22636f6465223a33382c226c616e6775616765223a22505954484f4e222c22766'
        "57273696f6e223a3430312c226f7061717565223a372c22666c6167223a302c226578744669656c6473223a7b22636f6e737"
        "56d657247726f7570223a2267227d7d\"}' | evenkeel rocketmq-decode"
    ),
    "burrow-status": (
        'echo \'{"window": [{"offset": 10, "timestamp_ms": 1700000000000, "lag": 7}, {"offset": 20, "time'
        'stamp_ms": 1700000010000, "lag": 8}], "broker_offsets": [29], "current_lag": 9, "now_ms": 17000'
        '00015000, "allowed_lag": 0}\' | evenkeel burrow-status'
    ),
}
"""By command a line for a shell. The servers (`up`, `demo`, `run`, `submit`, `probe`, `serve`) run on."""
