// The folder `checkpoints` of a run: which steps are in it, and the moves by which a step appears
// and goes. A step's folder is there whole or not at all; what is not named step-* is no one's
// checkpoint. One process at a time changes a folder: the one that holds its lease.
//
//   .lease                      who writes here, locked as long as they live
//   .staging-<step>-<id>/       a save under way
//   step-000000200/             committed by one rename of its staging folder
//   .trash-<step>-<id>/         one being deleted
//   PINS                        steps that retention leaves alone; made by people and ckpt prune
//   aside-step-000000300-<id>/  of a later step than one that a run went back to; for its user
//
// A kill or a power cut may come between any two lines; in brackets what it leaves.
//
//   save:    make .staging [nothing that counts]; all files written and synced by their writers
//            [staging, swept]; sync .staging: their names are on the disk; rename .staging to
//            step-N [killed: step-N is there, whole; power cut: it is there whole or .staging is];
//            sync the parent [step-N]
//   delete:  rename step-N to .trash [it is there whole under the one or the other name]; sync the
//            parent: after a power cut the name cannot come back with files missing; unlink file by
//            file, rmdir [leftovers, swept]
//   sweep:   unlink and rmdir what has no name that counts [less leftovers]
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/range.hpp"

namespace weft {

struct CheckpointPlace {
  index_t step = 0;
  std::string path;
  friend bool operator==(const CheckpointPlace&, const CheckpointPlace&) = default;
};

std::string step_folder_name(index_t step);  // "step-000000200"
// By name alone; newest first; empty where there is no folder. Throws Error(data) where the folder
// cannot be read.
std::vector<CheckpointPlace> list_checkpoints(const std::string& folder);
std::string new_checkpoint_id();  // 32 random hexadecimal digits

// Holds a run's checkpoint folder against a second writer. The lock is the system's (flock), so it
// ends with its holder, however that ends.
class Lease {
 public:
  // Makes `folder` where it is not there. Throws Error(usage) that names the holder (host, process,
  // since when) where another one lives.
  explicit Lease(const std::string& folder);
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  // False where the file system has no locks: a second writer would not be refused.
  bool is_locked() const { return is_locked_; }
  // Not empty: what a second writer would not notice, and why; to be shown. The file system has no
  // locks, so that nothing is protected, or it did not take the holder's name.
  const std::string& warning() const { return warning_; }

 private:
  void write_name(const std::string& path);

  int fd_ = -1;
  bool is_locked_ = false;
  std::string warning_;
};

// Removes what savers and deleters that are no more have left. Only for the holder of the lease.
// Throws Error(failed).
void sweep(const std::string& folder);

// A staging folder. Dropped with all that is in it unless committed.
class StagingFolder {
 public:
  // `name`: what it will be called; empty: the step's name.
  StagingFolder(std::string folder, index_t step, const std::string& id, std::string name = {});
  ~StagingFolder();
  StagingFolder(const StagingFolder&) = delete;
  StagingFolder& operator=(const StagingFolder&) = delete;

  static std::string path_of(const std::string& folder, index_t step, const std::string& id);
  const std::string& path() const { return path_; }
  // Syncs the staging folder and renames it to its place: the checkpoint is there. Throws
  // Error(failed), also where its place is taken already.
  void commit();
  // After commit(): syncs the parent, so that it is there after a power cut, too. Throws
  // Error(failed); the checkpoint is there all the same, whole.
  void confirm();

 private:
  std::string folder_;
  std::string path_;
  index_t step_;
  std::string name_;
  bool is_committed_ = false;
};

// Deletes a checkpoint: out of its name by one rename, then file by file. Throws Error(failed).
void remove_checkpoint(const std::string& folder, const CheckpointPlace& place);

// Takes a checkpoint out of the steps without deleting it; returns its new path. Throws
// Error(failed).
std::string set_aside(const std::string& folder, const CheckpointPlace& place);

// Bytes that are free for this user where `folder` is. Throws Error(failed).
std::uint64_t free_bytes(const std::string& folder);

}  // namespace weft
