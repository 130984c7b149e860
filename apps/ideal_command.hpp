// `weft ideal`: the idealized model of a training step as a table and a plot, for parameters that
// are given or fitted to a study.
#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/ideal_model.hpp"

namespace weft {

struct IdealOptions {
  IdealModel model;
  std::string scaling = "strong";  // or "weak"
  std::vector<index_t> ranks = {1, 2, 4, 8, 16, 32, 64};
  std::vector<double> local_ms;  // of each rank, for the wait for the slowest; empty: not asked
  std::string study;             // JSON of `weft layouts --json`; empty: none
  std::string svg;               // *.svg for the plot, replaced where it exists; empty: none
  bool json = false;
};

// One process. Text for people to `text`; with `json` one object on one line to `out`. Throws
// Error(usage) for what is no model and no study.
int ideal(const IdealOptions& options, std::ostream& text, std::ostream& out);

// Its parameters, as the page of `weft report` reads them, too.
nlohmann::ordered_json model_json(const IdealModel& model);

}  // namespace weft
