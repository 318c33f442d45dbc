#include "espalier/base/error.h"

#include <cstdio>
#include <cstdlib>

namespace espalier {
namespace {

std::string compose(const std::string& what, const std::string& where, const std::string& todo) {
  std::string text = what;
  if (!where.empty()) text += ": " + where;
  if (!todo.empty()) text += "; " + todo;
  return text;
}

}  // namespace

Error::Error(ErrorKind kind, const std::string& what, const std::string& where, const std::string& todo)
    : std::runtime_error(compose(what, where, todo)), kind_(kind) {}

void usage_error(const std::string& what, const std::string& where, const std::string& todo) {
  throw Error(ErrorKind::kUsage, what, where, todo);
}

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "espalier: internal error: %s does not hold at %s:%d; please report this\n", condition, file, line);
  std::abort();
}

}  // namespace espalier
