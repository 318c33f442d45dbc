#pragma once
// The table's workers: one kind of measurement each, in a process of its own, so that none disturbs another's caches, threads or memory.
// A worker's words are those behind `--worker`:
//   ceilings | kernels | collectives        one line: the result
//   products NETWORK                        `[]`, then for each line N read: milliseconds of each product, the median of N runs
//   steps NETWORK MESH CUT                  what a device holds and receives, then for each line N read: milliseconds of N
//                                           steps, and how far apart the cores are then (round_trip_ns in ceiling.h)
//   ops NETWORK MESH CUT                    one line: what each op of a step takes on the first device
//   compile NETWORK MESH CUT                one line: seconds from the layers to the compiled step
// Lines are JSON. CUT is `nothing` or `columns`.
#include <string>
#include <vector>

namespace espalier::bench {

int work(const std::vector<std::string>& words);

}  // namespace espalier::bench
