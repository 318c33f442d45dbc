#pragma once
// What this machine can do at all: the measure of everything else in the table. Float32 multiply-adds out of registers, and memory
// bandwidth beyond the last cache, each on some number of pinned cores. The best of a few repeats, for a ceiling is not an average.
// Bytes are counted as STREAM does, those read plus those written: 8 an element copied, 12 of a = b + 3 c (triad) and of a += b (update).
namespace espalier::bench {

struct Ceiling {
  int cores = 1;
  double gflops = 0;                       // a multiply-add is two
  double copy = 0, triad = 0, update = 0;  // GB/s, 10^9 bytes
};

// Uses the first `cores` of the available ones and 3 x 256 MiB in huge pages.
Ceiling measure_ceiling(int cores);

// Nanoseconds in which a cache line goes from the first available core to the last and back; 0 with one core. Below some 150 they share a
// cache; beyond, whatever one core wrote and another reads is slow. The cores of a virtual machine may move while it runs.
double round_trip_ns();

}  // namespace espalier::bench
