// What stands in for hdf5_file.cpp in a build without HDF5 (WEFT_HDF5=OFF): the same functions,
// each of which says so.
#include "core/error.hpp"
#include "io/checkpoint/hdf5_file.hpp"

namespace weft::hdf5 {
namespace {

[[noreturn]] void refuse() {
  throw Error(ExitCode::usage,
              "checkpoints need HDF5 and this weft is built without it; configure with "
              "-DWEFT_HDF5=ON, or switch checkpoints off in the plan");
}

}  // namespace

class Skeleton::File {};
class Reader::File {};

bool is_built_in() { return false; }
std::string library_version() { refuse(); }
std::string make_file(const std::vector<Table>&, const std::vector<Attribute>&) { refuse(); }

std::string make_view(const std::vector<VirtualDataset>&, const std::vector<Attribute>&) {
  refuse();
}

Skeleton::Skeleton(const std::vector<Dataset>&, const std::vector<Attribute>&) { refuse(); }
Skeleton::~Skeleton() = default;
Skeleton::Skeleton(Skeleton&&) noexcept = default;
Skeleton& Skeleton::operator=(Skeleton&&) noexcept = default;
const FileLayout& Skeleton::layout() const { refuse(); }
void Skeleton::set_root(const std::vector<Attribute>&) { refuse(); }

Reader::Reader(std::string, std::string) { refuse(); }
Reader::~Reader() = default;
std::vector<std::uint64_t> Reader::integers(const std::string&) const { refuse(); }
std::vector<double> Reader::numbers(const std::string&) const { refuse(); }
std::vector<std::string> Reader::texts(const std::string&) const { refuse(); }
std::string Reader::root_text(const std::string&) const { refuse(); }
std::vector<std::uint64_t> Reader::root_integers(const std::string&) const { refuse(); }

}  // namespace weft::hdf5
