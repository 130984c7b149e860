// The rules of a plan that join several keys, as yes-or-no questions. validate() asks them and,
// where the answer is no, tries neighbouring values until it is yes; warnings() tries better values
// the same way. Internal to this folder.
#pragma once

#include <optional>
#include <vector>

#include "parallel/plan/plan.hpp"

namespace weft::plan_rules {

// The model takes samples such as the data set has.
bool model_fits(const Plan& plan);

// MLP: the feed-forward width is a multiple of the number of pieces. (Transformers: follows from
// heads.)
bool pieces_fit(const Plan& plan);

// Transformers: heads divide hidden and are a multiple of the number of pieces.
bool heads_fit(const Plan& plan);

// Length buckets rise, and the last one holds a whole sample.
bool buckets_fit(const Plan& plan);

// ViT: patches tile the image.
bool patch_fits(const Plan& plan);

// Each piece of the first layer has one input feature at least; texts have an embedding instead.
bool input_fits(const Plan& plan);

// All that asks for a number of pieces.
bool shards_fit(const Plan& plan);

// tp <= shards, dp <= lanes. In fast mode pieces and lanes follow the layout, so both always hold.
bool tp_fits(const Plan& plan);
bool dp_fits(const Plan& plan);

// Each stage has one block at least.
bool pp_fits(const Plan& plan);

// A list of stages has one entry for each stage and adds up to the blocks. Where pp does not fit,
// that fault comes first.
bool stages_fit(const Plan& plan);
// Measured stages need a checkpoint to be split again through.
bool split_is_saved(const Plan& plan);

// global = micro x microbatches per lane x lanes, in whole numbers.
bool batch_divides(const Plan& plan);

// An epoch has one step at least.
bool batch_fits_split(const Plan& plan);
index_t most_global(const Plan& plan);  // the largest global batch that the split allows

// The plan can run on its numbers of ranks, all that does not depend on the layout being as it is.
// A list of stages counts as even: advice on a layout may change it too.
bool layout_fits(const Plan& plan);

// The faults of all rules whose keys are not among those of `known_faults`.
std::vector<PlanFault> check_rules(const Plan& plan, std::optional<index_t> num_ranks,
                                   const std::vector<PlanFault>& known_faults);

}  // namespace weft::plan_rules
