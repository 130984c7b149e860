// A disk as a power cut would leave it: the file behind a loop device, copied in one moment. What
// the file system has not written to the device by then is not in the copy. Used by a test and,
// preloaded into the program that writes, by file_faults.cpp.
#pragma once

#include <optional>
#include <string>

namespace weft::test {

// The n-th different state of the disk, as a file "FOLDER/n.img".
struct DiskImage {
  int number = 0;
  bool is_new = false;  // else the disk is as it was at the copy before
  std::string path;
};

// Copies of one disk, taken by any number of processes. All is read from the environment:
// WEFT_FAULT_DISK (the file), WEFT_FAULT_DEVICE ("loop3", whose file it is), WEFT_FAULT_COPIES
// (an existing folder).
class DiskImages {
 public:
  DiskImages();
  DiskImages(std::string disk, std::string device, std::string folder);

  // While it is held no other process takes an image, nor does what it holds this lock for.
  class Turn {
   public:
    explicit Turn(const DiskImages& images);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    friend class DiskImages;
    int fd_ = -1;
  };

  // Nothing where the system refuses, or where the device does not come to rest in 10 s.
  std::optional<DiskImage> take(const Turn& turn) const;

 private:
  std::string path_of(int number) const;
  std::string disk_, device_, folder_;
};

}  // namespace weft::test
