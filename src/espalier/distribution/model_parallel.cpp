#include "espalier/distribution/model_parallel.h"

namespace espalier {

ModelParallel::ModelParallel(LayoutMap layout_map, const std::optional<std::string>& batch_dim_name)
    : Distribution{layout_map.mesh(), layout_map, find_batch_axis(layout_map.mesh(), batch_dim_name), "ModelParallel"} {}

}  // namespace espalier
