#include "espalier/base/subnormals.h"

namespace espalier {

FlushSubnormals::FlushSubnormals() = default;
FlushSubnormals::~FlushSubnormals() = default;

}  // namespace espalier
