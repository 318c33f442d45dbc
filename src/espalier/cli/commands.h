#pragma once
// The commands, one file each. Each prints its result and returns the exit code; what goes wrong is thrown.
#include "espalier/cli/options.h"

namespace espalier::cli {

int train(const Options& options);
int evaluate(const Options& options);
int predict(const Options& options);
int plan(const Options& options);
int inspect(const Options& options);
int explain(const Options& options);
int verify(const Options& options);

}  // namespace espalier::cli
