// What `weft ideal` and `weft report` draw of the idealized model and of a study beside it.
#pragma once

#include <array>
#include <vector>

#include "apps/ideal_fit.hpp"
#include "apps/ideal_model.hpp"
#include "apps/svg_plot.hpp"

namespace weft {

// What a step is made of, and the speed-up beside that of as many times the devices.
std::array<SvgPicture, 2> ideal_plots(const std::vector<IdealStep>& steps);

// Step time and speed-up, measured and by the fit, over the number of devices. The speed-up is
// against the first of the layouts with the fewest devices, whose speed is its number of devices.
std::array<SvgPicture, 2> study_plots(const std::vector<StudyPoint>& points, const IdealFit& fit);

}  // namespace weft
