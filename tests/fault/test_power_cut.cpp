// The power cut at each file operation of saving and up to 12 s after it, on a file system of its
// own: the image of a loop-mounted ext4 is copied at each moment, without what the system still
// holds in memory. Mounted again, each copy has every checkpoint that the run had reported and
// that was not yet replaced, and the run goes on from there to the undisturbed run's bits. What a
// copy holds is what reached the device: a device that loses what it has not been told to flush
// loses more. WEFT_POWER_CUT_STRIDE=1 tries every different copy, a larger number some of them.
#include <catch2/catch.hpp>

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/fault/checkpoint_run.hpp"
#include "tests/fault/disk_image.hpp"

namespace {

using namespace weft::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr int seconds_after = 12;

// From here on mounts are this process' own and its children's: however it ends, the system takes
// them back, and with them the loop devices. False where this is not allowed.
bool has_own_mounts() {
  static const bool is_done = ::unshare(CLONE_NEWNS) == 0 &&
                              ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  return is_done;
}

// A file with a file system on it, mounted while it lives.
class Mounted {
 public:
  Mounted(const std::string& image, std::string folder) : folder_(std::move(folder)) {
    fs::create_directories(folder_);
    const ProcessResult result = run_shell("mount -o loop,noatime " + image + " " + folder_);
    fault_ = result.exit_code == 0 ? "" : result.text;
    if (fault_.empty()) folder_ = fs::canonical(folder_).string();
  }
  ~Mounted() {
    if (!fault_.empty()) return;
    // What used it may still be about to end.
    for (int tries = 0; ::umount(folder_.c_str()) != 0 && tries < 100; ++tries)
      std::this_thread::sleep_for(50ms);
  }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;

  const std::string& fault() const { return fault_; }
  const std::string& folder() const { return folder_; }
  std::string device() const {
    const ProcessResult result = run_shell("findmnt -n -o SOURCE -M " + folder_);
    return fs::path(result.out.substr(0, result.out.find('\n'))).filename().string();
  }

 private:
  std::string folder_, fault_;
};

std::string new_disk(const std::string& folder) {
  const std::string image = folder + "/disk.img";
  const ProcessResult made = run_shell("truncate -s 64M " + image + " && mkfs.ext4 -q -b 4096 " +
                                       "-E lazy_itable_init=0,lazy_journal_init=0 " + image);
  return made.exit_code == 0 ? image : "";
}

// Empty, or why this cannot be tested here.
std::string reason_to_skip() {
  if (!has_own_mounts()) return "no mounts of its own for a process (root's)";
  const std::string folder = fresh_folder("power-cut");
  const std::string image = new_disk(folder);
  if (image.empty()) return "no mkfs.ext4";
  const Mounted mounted(image, folder + "/disk");
  if (!mounted.fault().empty()) return "no loop devices: " + mounted.fault();
  if (!fs::exists("/sys/block/" + mounted.device() + "/stat")) return "no /sys/block/loop*/stat";
  return "";
}

bool is_possible() {
  static const std::string reason = reason_to_skip();
  if (!reason.empty()) WARN("SKIPPED: power cuts need root and loop devices: " << reason);
  return reason.empty();
}

struct Cut {
  std::string image;
  std::string when;
  std::vector<int> reported;  // steps of the checkpoints that the run had said to be saved
};

// "checkpoint /…/step-000000004, 0.1 MiB in …"
std::vector<int> reported_in(const std::string& said) {
  std::vector<int> steps;
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    const auto name = line.find("/step-");
    if (!line.starts_with("checkpoint /") || name == std::string::npos) continue;
    if (line.find(" MiB", name) == std::string::npos) continue;  // cut in two
    steps.push_back(std::stoi(line.substr(name + 6)));
  }
  return steps;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Three checkpoints of which two stay: the last of them retires the first.
SmallPlan small_plan(bool async) {
  return {.model = "vit", .hidden = 16, .steps = 6, .every_steps = 2, .keep = 2, .async = async};
}

// All that a power cut could have left of one run, up to `seconds` after its end. `no_sync`: files,
// folders or all, which are then not synced.
std::vector<Cut> cuts_of(const std::string& plan, const Layout& layout, int seconds,
                         const std::string& no_sync = {}) {
  const std::string folder = fs::canonical(fresh_folder("power-cut")).string();
  const std::string disk = new_disk(folder), copies = folder + "/copies";
  const std::string said = folder + "/said", log = folder + "/operations";
  REQUIRE_FALSE(disk.empty());
  fs::create_directories(copies);
  std::vector<Cut> cuts;
  {
    const Mounted live(disk, folder + "/live");
    REQUIRE(live.fault().empty());
    const std::string run = live.folder() + "/run", device = live.device();
    // All of the run folder: between a save and the next one there is the log.
    const std::string faults = file_faults(run, log, 0, 0, "snapshot-on") +
                               "WEFT_FAULT_RANK=all WEFT_FAULT_FOLDER=" + run +
                               " WEFT_FAULT_DISK=" + disk + " WEFT_FAULT_DEVICE=" + device +
                               " WEFT_FAULT_COPIES=" + copies + " WEFT_FAULT_SAID=" + said +
                               " WEFT_FAULT_NO_SYNC=" + no_sync + " ";
    const ProcessResult done = train(plan, run, layout, ">" + said + " 2>&1", faults);
    INFO(read_text(said));
    REQUIRE(done.exit_code == 0);
    const std::string text = read_text(said);
    for (const FileOperation& one : read_operations(log)) {
      if (!one.name.starts_with("cut-")) continue;
      cuts.push_back({one.path,
                      one.name.substr(4) + " " + one.outcome + " " + std::to_string(one.index) +
                          " of rank " + std::to_string(one.rank),
                      reported_in(text.substr(0, static_cast<std::size_t>(one.bytes)))});
    }
    const auto end = std::chrono::steady_clock::now();
    const DiskImages images(disk, device, copies);
    for (int after = 0; after <= seconds; ++after) {
      std::this_thread::sleep_until(end + std::chrono::seconds(after));
      const auto image = images.take(DiskImages::Turn(images));
      REQUIRE(image);
      cuts.push_back({image->path, std::to_string(after) + " s after the end", reported_in(text)});
    }
  }
  REQUIRE(cuts.size() > 50);
  CHECK(cuts.back().reported == std::vector<int>{2, 4, 6});
  return cuts;
}

// Reported, not there whole, and not replaced: two newer ones would be.
std::vector<int> lost_of(const std::vector<int>& reported, const std::set<int>& there) {
  std::vector<int> lost;
  for (const int step : reported) {
    const auto newer = std::distance(there.upper_bound(step), there.end());
    if (!there.contains(step) && newer < 2) lost.push_back(step);
  }
  return lost;
}

std::set<int> steps_of(const std::vector<std::string>& step_folders) {
  std::set<int> steps;
  for (const std::string& folder : step_folders)
    steps.insert(std::stoi(fs::path(folder).filename().string().substr(5)));
  return steps;
}

// The same state of the disk at several moments; what was said by the last of them counts.
std::vector<Cut> different(const std::vector<Cut>& cuts) {
  std::vector<Cut> some;
  for (const Cut& cut : cuts) {
    if (!some.empty() && some.back().image == cut.image) {
      some.back().reported = cut.reported;
      some.back().when += ", " + cut.when;
    } else {
      some.push_back(cut);
    }
  }
  return some;
}

void require_survival(const Cut& cut, const std::string& plan, const Layout& layout,
                      const Outcome& undisturbed) {
  INFO(cut.image << ": " << cut.when);
  {
    const Mounted mounted(cut.image, fs::path(cut.image).parent_path().string() + "/mounted");
    INFO(mounted.fault());
    REQUIRE(mounted.fault().empty());
    const std::string run = mounted.folder() + "/run";
    const std::vector<std::string> valid = valid_step_folders(run);
    CHECK(lost_of(cut.reported, steps_of(valid)) == std::vector<int>{});
    // A step's folder is there whole or not at all.
    CHECK(valid == step_folders(run));
    const ProcessResult resumed = train(plan, run, layout, "--resume auto");
    INFO("resumed on " << layout.num_ranks << " ranks (" << layout.keys << ")\n" << resumed.text);
    REQUIRE(resumed.exit_code == 0);
    CHECK(outcome_of(run) == undisturbed);
    const std::vector<std::string> in_the_end = {step_folder(run, 4), step_folder(run, 6)};
    CHECK(valid_step_folders(run) == in_the_end);
  }
  // Nothing that a file system with a journal cannot be after a power cut: the copy was of one
  // moment.
  const ProcessResult checked = run_shell("e2fsck -fn " + cut.image);
  INFO(checked.out << checked.text);
  CHECK(checked.exit_code == 0);
}

void cut_at_each_operation(const Layout& layout, const Layout& other, bool async) {
  if (!is_possible()) return;
  const std::string plan = write_plan(small_plan(async), "power-cut");
  const std::string reference = fresh_run("power-cut-reference");
  REQUIRE(train(plan, reference).exit_code == 0);
  const Outcome undisturbed = outcome_of(reference);
  const std::vector<Cut> all = cuts_of(plan, layout, seconds_after);
  const std::vector<Cut> cuts = different(all);
  const auto stride = static_cast<std::size_t>(number_from_environment("WEFT_POWER_CUT_STRIDE", 5));
  WARN(all.size() << " moments, " << cuts.size() << " states of the disk, of which every " << stride
                  << ". is tried");
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    // From the end, so that the last is one of them.
    if ((cuts.size() - 1 - i) % stride == 0) require_survival(cuts[i], plan, other, undisturbed);
  }
}

}  // namespace

TEST_CASE("the power cut at each operation of two ranks' saves and after them") {
  cut_at_each_operation({2, "layout.dp=2 layout.zero=1"}, {2, "layout.tp=2"}, false);
}

TEST_CASE("the power cut at each operation of saves that go on meanwhile, and after them") {
  cut_at_each_operation({2, "layout.tp=2"}, {1, ""}, true);
}

// The test's own test: without syncs there is something to find.
TEST_CASE("checkpoints that are not synced are found to be lost") {
  if (!is_possible()) return;
  for (const char* no_sync : {"all", "folders", "files"}) {
    const std::string plan = write_plan(small_plan(false), "power-cut");
    int num_lost = 0, num_states = 0;
    for (const Cut& cut : different(cuts_of(plan, {1, ""}, 0, no_sync))) {
      const Mounted mounted(cut.image, fs::path(cut.image).parent_path().string() + "/mounted");
      REQUIRE(mounted.fault().empty());
      ++num_states;
      const std::set<int> there = steps_of(valid_step_folders(mounted.folder() + "/run"));
      if (!lost_of(cut.reported, there).empty()) ++num_lost;
    }
    WARN(no_sync << " not synced: " << num_lost << " of " << num_states << " states lack a "
                 << "checkpoint that was reported");
    CHECK(num_lost > 0);
  }
}
