#!/usr/bin/env python3
"""Ranks on this machine: hosts_bench.py BINARY [MPI_ALLREDUCE]. What an idle rank takes of a core, the median round trip of a message to it,
a small program over both ranks, and an all-reduce of 64 MiB over two ranks beside MPI_Allreduce called directly (target mpi_allreduce)."""
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from hosts_test import MPIRUN, ranks_of  # noqa: E402
from server import Meshd, ok  # noqa: E402

COUNT = 16 << 20  # of f32: 64 MiB

# Each device has 64 MiB; in every turn they are summed over both and halved.
ALL_REDUCE = f"""sdy.mesh @mesh = <["x"=2]>
func.func @main(%n: tensor<i32>) -> tensor<f32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r = sdy.manual_computation(%n) in_shardings=[<@mesh, []>] out_shardings=[<@mesh, []>] manual_axes={{"x"}} (%m: tensor<i32>) {{
    %c = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %p = stablehlo.partition_id : tensor<ui32>
    %f = stablehlo.convert %p : (tensor<ui32>) -> tensor<f32>
    %v = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<{COUNT}xf32>
    %w:2 = stablehlo.while(%i = %c, %u = %v) : tensor<i32>, tensor<{COUNT}xf32> cond {{
      %t = stablehlo.compare LT, %i, %m, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    }} do {{
      %j = stablehlo.add %i, %one : tensor<i32>
      %s = "stablehlo.all_reduce"(%u) ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %q = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %q : tensor<f32>
      }}) {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}} : (tensor<{COUNT}xf32>) -> tensor<{COUNT}xf32>
      %h = stablehlo.constant dense<0.5> : tensor<{COUNT}xf32>
      %k = stablehlo.multiply %s, %h : tensor<{COUNT}xf32>
      %e = stablehlo.add %k, %v : tensor<{COUNT}xf32>
      stablehlo.return %j, %e : tensor<i32>, tensor<{COUNT}xf32>
    }}
    %l = stablehlo.slice %w#1 [0:1] : (tensor<{COUNT}xf32>) -> tensor<1xf32>
    %y = stablehlo.reshape %l : (tensor<1xf32>) -> tensor<f32>
    %x = "stablehlo.all_reduce"(%y) ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %q = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %q : tensor<f32>
    }}) {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>}} : (tensor<f32>) -> tensor<f32>
    sdy.return %x : tensor<f32>
  }} : (tensor<i32>) -> tensor<f32>
  return %r : tensor<f32>
}}"""

SMALL = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<f32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}"""


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle_share(pids, seconds=10):
    before = [cpu_seconds(pid) for pid in pids]
    time.sleep(seconds)
    return [(cpu_seconds(pid) - start) / seconds for pid, start in zip(pids, before)]


def round_trips(server, count=40):
    """Of the pings that rank 0 sends each second."""
    out = []
    while len(out) < count:
        text = server.ask("GET", "/metrics")[2].decode()
        value = next(float(line.split()[-1]) for line in text.splitlines() if line.startswith('meshd_rank_round_trip_seconds{rank="1"}'))
        if value > 0 and (not out or out[-1] != value):
            out.append(value)
        time.sleep(0.3)
    return out


def run_ms(server, program, argument):
    answer = server.ask("POST", "/v1/run", {"program": {"text": program}, "arguments": [argument]})
    ok(answer)
    timing = answer[1]["Server-Timing"]
    return next(float(part.split("dur=")[1]) for part in timing.split(",") if part.strip().startswith("run"))


def all_reduce_ms(server):
    run_ms(server, ALL_REDUCE, 1)
    times = []
    for _ in range(5):
        few, many = run_ms(server, ALL_REDUCE, 2), run_ms(server, ALL_REDUCE, 12)
        times.append((many - few) / 10)
    return statistics.median(times)


def main():
    binary = sys.argv[1]
    with Meshd(binary, "--devices", "2", launcher=[*MPIRUN, "2"]) as server:
        shares = idle_share(ranks_of(server))
        print("idle, of a core:", ", ".join(f"rank {rank} {share:.1%}" for rank, share in enumerate(shares)))
        trips = round_trips(server)
        print(f"round trip of a message: median {statistics.median(trips) * 1e6:.0f} us, largest of {len(trips)} {max(trips) * 1e6:.0f} us")
        small = sorted(run_ms(server, SMALL, [1] * 8) for _ in range(200))
        print(f"a small program over both ranks: median run {small[100]:.2f} ms")
        print(f"all-reduce of 64 MiB, with an add and a multiply: {all_reduce_ms(server):.1f} ms")
    with Meshd(binary, "--devices", "2") as server:
        print(f"the same in one process: {all_reduce_ms(server):.1f} ms")
    if sys.argv[2:]:
        direct = subprocess.run([*MPIRUN, "2", sys.argv[2]], capture_output=True, text=True, check=True).stdout.strip()
        print(f"MPI_Allreduce called directly: {direct} ms")


if __name__ == "__main__":
    main()
