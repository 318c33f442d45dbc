#pragma once
// Starts the threads that kernels split their work over, so that a system that has no room for them is met here, as an error, and not in
// the middle of a kernel, where OpenMP ends the process.
namespace espalier::ops {

// For kernels of `threads` threads that the calling thread will run; the threads stay. Several callers take turns.
// Errors (kMemory): the system cannot start so many.
void start_team(int threads);

}  // namespace espalier::ops
