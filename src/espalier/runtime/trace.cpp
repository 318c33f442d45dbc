#include "espalier/runtime/trace.h"

namespace espalier {

std::vector<TraceEvent> Trace::events() const {
  std::vector<TraceEvent> all;
  for (const List& list : lists_) all.insert(all.end(), list.events.begin(), list.events.end());
  std::stable_sort(all.begin(), all.end(), [](const TraceEvent& a, const TraceEvent& b) { return a.begin_ns < b.begin_ns; });
  return all;
}

}  // namespace espalier
